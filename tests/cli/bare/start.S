// What runs before main() on a Cortex-A53 without an operating system: floats on, a stack, zeros where C wants them, and
// memory that is mapped to itself, because without a map every address would be a device's, where loads must be aligned.
// For QEMU's board "virt", which starts at exception level 1 and has its memory at 1 GiB.
    .section .text.start, "ax"
    .globl start
start:
    mov x0, #(3 << 20)          // CPACR_EL1.FPEN: floats and vectors
    msr cpacr_el1, x0
    isb
    adrp x0, stack_top
    add sp, x0, :lo12:stack_top

    adrp x0, bss_begin
    add x0, x0, :lo12:bss_begin
    adrp x1, bss_end
    add x1, x1, :lo12:bss_end
1:  cmp x0, x1
    b.hs 2f
    str xzr, [x0], #8
    b 1b

2:  mov x0, #0xff00             // kinds of memory: 0 devices, 1 written back
    msr mair_el1, x0
    ldr x0, =(32 | 1 << 8 | 1 << 10 | 3 << 12 | 1 << 23)  // 4 GiB of addresses in pages of 4 KiB, below only
    msr tcr_el1, x0
    adrp x0, map
    add x0, x0, :lo12:map
    msr ttbr0_el1, x0
    tlbi vmalle1
    dsb sy
    isb
    mrs x0, sctlr_el1
    mov x1, #(1 << 0 | 1 << 2 | 1 << 12)  // map, data cache, instruction cache
    orr x0, x0, x1
    msr sctlr_el1, x0
    isb

    bl main

// Ends the emulator with the code in w0: semihosting's SYS_EXIT_EXTENDED.
    .globl leave
leave:
    adrp x1, reason
    add x1, x1, :lo12:reason
    and x0, x0, #0xff
    str x0, [x1, #8]
    mov w0, #0x20
    hlt #0xf000
    b .

    .section .data
    .balign 4096
map:                            // blocks of 1 GiB
    .quad 0x00000000 | 1 | 0 << 2 | 1 << 10
    .quad 0x40000000 | 1 | 1 << 2 | 3 << 8 | 1 << 10
    .quad 0, 0
reason:
    .quad 0x20026, 0
