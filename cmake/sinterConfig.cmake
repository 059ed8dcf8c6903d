# find_package(sinter): the executable sinter::sinter, sinter_add_model() and sinter::headers. They are found from this
# file's own place, so that the installed folder can be moved. From CMake 3.16 on.
#
# A toolchain with CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY has packages searched for in the board's file system
# alone, where this one isn't: give -Dsinter_DIR=PREFIX/lib/cmake/sinter.
cmake_policy(VERSION 3.16...3.25)
if(NOT TARGET sinter::sinter)
  get_filename_component(_sinter_executable "${CMAKE_CURRENT_LIST_DIR}/../../../bin/sinter" ABSOLUTE)
  if(NOT EXISTS "${_sinter_executable}")
    set(sinter_FOUND FALSE)
    set(sinter_NOT_FOUND_MESSAGE "${_sinter_executable} is missing")
    return()
  endif()
  add_executable(sinter::sinter IMPORTED GLOBAL)
  set_target_properties(sinter::sinter PROPERTIES IMPORTED_LOCATION "${_sinter_executable}")
  unset(_sinter_executable)
endif()
include("${CMAKE_CURRENT_LIST_DIR}/sinterAddModel.cmake")
