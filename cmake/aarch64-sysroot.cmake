# Toolchain: the compiler sinter itself, for 64-bit ARM Linux, as `./dev wheel aarch64` builds it. Debian's cross compiler
# takes the libraries from a folder of Debian's arm64 packages, SINTER_SYSROOT; programs are linked with them, and what must
# run while sinter is built runs under qemu with that folder as its root.
include(${CMAKE_CURRENT_LIST_DIR}/aarch64-linux-gnu.cmake)
unset(CMAKE_EXE_LINKER_FLAGS_INIT)  # -static
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SINTER_SYSROOT)
set(CMAKE_SYSROOT ${SINTER_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
if(SINTER_QEMU)
  list(APPEND CMAKE_CROSSCOMPILING_EMULATOR -L ${SINTER_SYSROOT})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)  # dagre and d3 are found as files of this machine
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
