// sinter: the command line. Everything is in cli/; here is only what must stand before main.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "cli/command.h"
#include "driver/errors.h"
#include "driver/process.h"
#include "ir/error.h"

namespace {

// For exceptions that nobody can catch, of initialisers before main and of functions that throw nothing: the
// exit codes hold there as well.
[[noreturn]] void end_by_exception() {
  int code = sinter::kExitBug;
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
    std::fputs("sinter: a bug of ours: terminated\n", stderr);
  } catch (const sinter::Bug& b) {  // of a destructor
    std::fputs(b.text.c_str(), stderr);
  } catch (const std::bad_alloc&) {
    std::fputs("sinter: not enough memory\n", stderr);
    code = sinter::kExitRefused;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "sinter: a bug of ours: %s\n", e.what());
  } catch (...) {
    std::fputs("sinter: a bug of ours: an exception of no kind\n", stderr);
  }
  sinter::remove_temporary_folders();
  std::_Exit(code);
}

// And for libraries that give up with abort(): an assertion of theirs, which memory that ran out can lead to.
void end_by_abort(int) {
  static const char text[] = "sinter: a bug of ours, or not enough memory: aborted\n";
  if (write(STDERR_FILENO, text, sizeof text - 1) > 0) sinter::remove_temporary_folders();
  std::_Exit(sinter::kExitBug);
}

void before_all() {
  std::set_terminate(end_by_exception);
  std::signal(SIGABRT, end_by_abort);
}

// Runs before the initialisers of shared libraries, which allocate too.
[[gnu::section(".preinit_array"), gnu::used]] void (*const kBeforeAll)() = before_all;

}  // namespace

int main(int argc, char** argv) { return sinter::run_command_line(argc, argv); }
