// A plugin for qemu-aarch64: how many instructions a program executes between its marks `hint #112` and `hint
// #113` (bench/board.py puts them around one run of a net). To the file that is named on the command line:
//
//     qemu-aarch64 -plugin ./instructions.so,to=COUNT PROGRAM
//
// The interface is version 1 of qemu's plugins (4.2 to 8.2), of which it takes these functions; there is no
// header in Debian. Whole blocks are counted when they begin, so the mark's own block makes the count a few
// too many or too few.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

extern "C" {
struct qemu_plugin_tb;
struct qemu_plugin_insn;
using Block = qemu_plugin_tb;
void qemu_plugin_register_vcpu_tb_trans_cb(std::uint64_t id, void (*translated)(std::uint64_t, Block*));
void qemu_plugin_register_vcpu_tb_exec_inline(Block* block, int add, void* counter, std::uint64_t term);
void qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_insn* insn, void (*executed)(unsigned, void*),
                                            int no_registers, void* data);
void qemu_plugin_register_atexit_cb(std::uint64_t id, void (*ended)(std::uint64_t, void*), void* data);
std::size_t qemu_plugin_tb_n_insns(const Block* block);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const Block* block, std::size_t index);
const void* qemu_plugin_insn_data(const qemu_plugin_insn* insn);
}

namespace {

constexpr std::uint32_t kHint = 0xd503201f;  // HINT #n: n in bits 5 to 11 (Arm ARM, C6.2, HINT)
constexpr std::uint32_t hint(std::uint32_t n) { return kHint | n << 5; }

std::uint64_t executed, begin, between;
std::string file;

void begins(unsigned, void*) { begin = executed; }
void ends(unsigned, void*) { between = executed - begin; }

void translated(std::uint64_t, Block* block) {
  const std::size_t count = qemu_plugin_tb_n_insns(block);
  qemu_plugin_register_vcpu_tb_exec_inline(block, 0, &executed, count);
  for (std::size_t i = 0; i < count; ++i) {
    qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(block, i);
    std::uint32_t word = 0;
    std::memcpy(&word, qemu_plugin_insn_data(insn), sizeof word);
    if (word == hint(112)) qemu_plugin_register_vcpu_insn_exec_cb(insn, begins, 0, nullptr);
    if (word == hint(113)) qemu_plugin_register_vcpu_insn_exec_cb(insn, ends, 0, nullptr);
  }
}

void ended(std::uint64_t, void*) {
  if (std::FILE* f = std::fopen(file.c_str(), "w")) {
    std::fprintf(f, "%llu\n", static_cast<unsigned long long>(between));
    std::fclose(f);
  }
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) int qemu_plugin_version = 1;
__attribute__((visibility("default"))) int qemu_plugin_install(std::uint64_t id, const void*, int argc,
                                                               char** argv) {
  for (int i = 0; i < argc; ++i)
    if (std::strncmp(argv[i], "to=", 3) == 0) file = argv[i] + 3;
  if (file.empty()) return 1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_atexit_cb(id, ended, nullptr);
  return 0;
}
}
