# Toolchain: the compiler sinter itself, for 64-bit ARM Linux, as `./dev wheel aarch64` builds it. Debian's cross compiler
# takes the libraries from a folder of Debian's arm64 packages, SINTER_SYSROOT, and what must run while it is built runs
# under qemu with that folder as its root.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_ASM_COMPILER aarch64-linux-gnu-gcc)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SINTER_SYSROOT)
set(CMAKE_SYSROOT ${SINTER_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
find_program(SINTER_QEMU NAMES qemu-aarch64-static qemu-aarch64)
if(SINTER_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${SINTER_QEMU} -L ${SINTER_SYSROOT})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)  # dagre and d3 are found as files of this machine
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
