# sinter as a part of another project (FetchContent, add_subdirectory): sinter::sinter and sinter_add_model(), as
# find_package(sinter) gives them.
#
# Models are compiled while CMake configures, on this machine and perhaps for another one. So the compiler is built
# now, in a folder and a configuration of its own, with this machine's compiler; it takes some minutes, once. With
# -DSINTER_EXECUTABLE=FILE that one is taken instead.
set(SINTER_EXECUTABLE "" CACHE FILEPATH "a sinter that this machine executes; without it one is built")
set(_sinter_executable "${SINTER_EXECUTABLE}")
if(NOT _sinter_executable)
  set(_sinter_folder "${CMAKE_CURRENT_BINARY_DIR}/host")
  set(_sinter_executable "${_sinter_folder}/sinter")
  set(_sinter_command "${CMAKE_COMMAND}")
  if(CMAKE_CROSSCOMPILING)  # what speaks of the other machine's compiler
    set(_sinter_command "${CMAKE_COMMAND}" -E env --unset=CC --unset=CXX --unset=CFLAGS --unset=CXXFLAGS --unset=LDFLAGS
                        --unset=CMAKE_TOOLCHAIN_FILE "${CMAKE_COMMAND}")
  endif()
  message(STATUS "sinter: building the compiler in ${_sinter_folder}")
  execute_process(COMMAND ${_sinter_command} -S "${CMAKE_CURRENT_SOURCE_DIR}" -B "${_sinter_folder}"
                          -G "${CMAKE_GENERATOR}" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF
                  RESULT_VARIABLE _sinter_code OUTPUT_VARIABLE _sinter_output ERROR_VARIABLE _sinter_output)
  if(_sinter_code EQUAL 0)
    execute_process(COMMAND ${_sinter_command} --build "${_sinter_folder}" --target sinter --parallel
                    RESULT_VARIABLE _sinter_code OUTPUT_VARIABLE _sinter_output ERROR_VARIABLE _sinter_output)
  endif()
  if(NOT _sinter_code EQUAL 0)
    message(FATAL_ERROR "sinter can't be built in ${_sinter_folder}:\n${_sinter_output}")
  endif()
endif()
if(NOT TARGET sinter::sinter)
  add_executable(sinter::sinter IMPORTED GLOBAL)
  set_target_properties(sinter::sinter PROPERTIES IMPORTED_LOCATION "${_sinter_executable}")
endif()
include("${CMAKE_CURRENT_LIST_DIR}/sinterAddModel.cmake")
