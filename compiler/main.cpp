// sinter: the command line. Everything is in cli/.
#include "cli/command.h"

int main(int argc, char** argv) { return sinter::run_command_line(argc, argv); }
