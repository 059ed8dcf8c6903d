# sinter_add_model(NAME MODEL FILE
#                  [TARGET CPU] [DIM "N<=8"...] [MAX_TRIPS N] [CONST NAME=VALUE...] [ONLY OUTPUT...]
#                  [WEIGHTS embed|file]
#                  [MAX_RAM 8M] [MAX_STACK 16K] [MAX_FLASH 4M] [THREADS K] [CUSTOM_OPS FILE.json] [OPTIONS ...])
#
# Compiles an ONNX model with sinter and adds the static library NAME, whose header is NAME.h. TARGET is one of
# `sinter targets`; "host", the default, is the machine that the project is built for: this one, or any ARMv8-A
# when cross-compiling for it. With WEIGHTS file the property SINTER_WEIGHTS of NAME is the file's path.
#
# The model is compiled while CMake configures, because the sources and compiler flags are its result; CMake
# configures again when the model, a file of CUSTOM_OPS or sinter itself changes. NAME must be fit for C names.
include_guard(GLOBAL)

function(_sinter_generate name folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "MODEL;TARGET;MAX_TRIPS;WEIGHTS;MAX_RAM;MAX_STACK;MAX_FLASH;THREADS;CUSTOM_OPS"
                        "DIM;CONST;ONLY;OPTIONS")
  if(NOT arg_MODEL)
    message(FATAL_ERROR "sinter_add_model(${name}): no MODEL")
  endif()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "sinter_add_model(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  cmake_path(ABSOLUTE_PATH arg_MODEL BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE model)
  if(NOT arg_TARGET)
    set(arg_TARGET host)
  endif()
  if(arg_TARGET STREQUAL "host" AND CMAKE_CROSSCOMPILING)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
      set(arg_TARGET aarch64)
    else()
      set(arg_TARGET scalar)
    endif()
  endif()

  get_target_property(sinter sinter::sinter IMPORTED_LOCATION)
  set(command ${sinter} compile ${model} --name ${name} --target ${arg_TARGET})
  foreach(dim IN LISTS arg_DIM)
    list(APPEND command --dim ${dim})
  endforeach()
  foreach(constant IN LISTS arg_CONST)
    list(APPEND command --const ${constant})
  endforeach()
  foreach(output IN LISTS arg_ONLY)
    list(APPEND command --only ${output})
  endforeach()
  foreach(option MAX_TRIPS WEIGHTS MAX_RAM MAX_STACK MAX_FLASH THREADS)
    if(arg_${option})
      string(TOLOWER ${option} flag)
      string(REPLACE _ - flag ${flag})
      list(APPEND command --${flag} ${arg_${option}})
    endif()
  endforeach()
  set(inputs ${model} ${sinter})
  if(arg_CUSTOM_OPS)
    cmake_path(ABSOLUTE_PATH arg_CUSTOM_OPS BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
    list(APPEND command --custom-ops ${arg_CUSTOM_OPS})
    list(APPEND inputs ${arg_CUSTOM_OPS})
  endif()
  list(APPEND command ${arg_OPTIONS})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${inputs})

  # Into a fresh folder first: files that stay the same keep their time, and are not compiled again.
  file(REMOVE_RECURSE ${folder}.new)
  execute_process(COMMAND ${command} -o ${folder}.new WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
                  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "sinter_add_model(${name}): sinter ended with ${code}\n${errors}")
  endif()
  string(STRIP "${output}" output)
  string(REPLACE "${folder}.new" "${folder}" output "${output}")
  message(STATUS "sinter: ${output}")
  file(GLOB_RECURSE old RELATIVE ${folder} ${folder}/*)
  file(GLOB_RECURSE new RELATIVE ${folder}.new ${folder}.new/*)
  foreach(file IN LISTS old)
    if(NOT file IN_LIST new)
      file(REMOVE ${folder}/${file})
    endif()
  endforeach()
  foreach(file IN LISTS new)
    cmake_path(GET file PARENT_PATH parent)
    file(MAKE_DIRECTORY ${folder}/${parent})
    file(COPY_FILE ${folder}.new/${file} ${folder}/${file} ONLY_IF_DIFFERENT)
  endforeach()
  file(REMOVE_RECURSE ${folder}.new)
endfunction()

# A macro, because the bundle's own CMake file enables assembler, which CMake allows in a file's scope only.
macro(sinter_add_model name)
  _sinter_generate(${name} ${CMAKE_CURRENT_BINARY_DIR}/${name}_model ${ARGN})
  include(${CMAKE_CURRENT_BINARY_DIR}/${name}_model/${name}.cmake)
  set_target_properties(${name} PROPERTIES SINTER_WEIGHTS
                        ${CMAKE_CURRENT_BINARY_DIR}/${name}_model/${name}.weights)
endmacro()
