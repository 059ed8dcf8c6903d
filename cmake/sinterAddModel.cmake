# sinter_add_model(NAME MODEL FILE
#                  [TARGET CPU] [DIM "N<=8"...] [MAX_TRIPS N] [CONST NAME=VALUE...] [ONLY OUTPUT...]
#                  [STATE OUTPUT=INPUT...]
#                  [WEIGHTS embed|file] [MAX_RAM 8M] [MAX_STACK 16K] [MAX_FLASH 4M] [THREADS K]
#                  [CUSTOM_OPS FILE.json] [TUNING FILE.json]
#                  [FP16] [FP16_ERROR E] [KEEP_F32 NODE...] [DATA FOLDER...] [OPTIONS ...])
#
# Compiles an ONNX model with sinter and adds the static library NAME, whose header is NAME.h. TARGET is one of
# `sinter targets`; "host", the default, is the machine that the project is built for: this one, or any ARMv8-A
# when cross-compiling for it. With WEIGHTS file the property SINTER_WEIGHTS of NAME is the file's path.
#
# The model is compiled while CMake configures, because the sources and compiler flags are its result; CMake
# configures again when a file that was read changes (the model, its external data, custom operators and their
# sources, a tuning file, constants, samples in the folders DATA) or sinter itself. NAME must be fit for C names.
# From CMake 3.16 on.
include_guard(GLOBAL)
cmake_policy(VERSION 3.16...3.25)

# Brings ${folder}.new to ${folder}: files that stay the same keep their time, and are not compiled again.
function(_sinter_update folder)
  string(REPLACE "[" "[[]" pattern "${folder}")  # in a pattern, [ begins a choice of letters
  file(GLOB_RECURSE old RELATIVE "${folder}" "${pattern}/*")
  file(GLOB_RECURSE new RELATIVE "${folder}.new" "${pattern}.new/*")
  foreach(file IN LISTS old)
    if(NOT file IN_LIST new)
      file(REMOVE "${folder}/${file}")
    endif()
  endforeach()
  foreach(file IN LISTS new)
    set(before "")
    if(EXISTS "${folder}/${file}")
      file(SHA256 "${folder}/${file}" before)
    endif()
    file(SHA256 "${folder}.new/${file}" now)
    if(NOT before STREQUAL now)
      get_filename_component(parent "${folder}/${file}" DIRECTORY)
      file(COPY "${folder}.new/${file}" DESTINATION "${parent}")
    endif()
  endforeach()
  file(REMOVE_RECURSE "${folder}.new")
endfunction()

# Lets CMake configure again when a file of the depfile that sinter wrote changes.
function(_sinter_watch depfile)
  file(READ "${depfile}" rest)
  while(rest MATCHES "\n  ([^\n]*)")
    set(line "${CMAKE_MATCH_1}")
    string(FIND "${rest}" "\n  ${line}" at)
    string(LENGTH "\n  ${line}" length)
    math(EXPR at "${at} + ${length}")
    string(SUBSTRING "${rest}" ${at} -1 rest)
    string(REGEX REPLACE " \\\\$" "" line "${line}")
    string(REPLACE "\\ " " " line "${line}")
    string(REPLACE "\\#" "#" line "${line}")
    string(REPLACE "$$" "$" line "${line}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${line}")
  endwhile()
endfunction()

function(_sinter_generate name folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "FP16"
                        "MODEL;TARGET;MAX_TRIPS;WEIGHTS;MAX_RAM;MAX_STACK;MAX_FLASH;THREADS;CUSTOM_OPS;TUNING;FP16_ERROR"
                        "DIM;CONST;ONLY;STATE;KEEP_F32;DATA;OPTIONS")
  if(NOT arg_MODEL)
    message(FATAL_ERROR "sinter_add_model(${name}): no MODEL")
  endif()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "sinter_add_model(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
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

  get_filename_component(model "${arg_MODEL}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  get_target_property(sinter sinter::sinter IMPORTED_LOCATION)
  set(options "")
  foreach(dim IN LISTS arg_DIM)
    list(APPEND options "--dim=${dim}")
  endforeach()
  foreach(constant IN LISTS arg_CONST)
    list(APPEND options "--const=${constant}")
  endforeach()
  foreach(output IN LISTS arg_ONLY)
    list(APPEND options "--only=${output}")
  endforeach()
  foreach(state IN LISTS arg_STATE)
    list(APPEND options "--state=${state}")
  endforeach()
  if(arg_FP16)
    list(APPEND options "--fp16")
  endif()
  foreach(node IN LISTS arg_KEEP_F32)
    list(APPEND options "--keep-f32=${node}")
  endforeach()
  foreach(sample IN LISTS arg_DATA)
    get_filename_component(sample "${sample}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND options "--data=${sample}")
  endforeach()
  foreach(option MAX_TRIPS WEIGHTS MAX_RAM MAX_STACK MAX_FLASH THREADS FP16_ERROR)
    if(arg_${option})
      string(TOLOWER ${option} flag)
      string(REPLACE _ - flag ${flag})
      list(APPEND options "--${flag}=${arg_${option}}")
    endif()
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${model}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${sinter}")
  foreach(option CUSTOM_OPS TUNING)
    if(arg_${option})
      get_filename_component(file "${arg_${option}}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
      string(TOLOWER ${option} flag)
      string(REPLACE _ - flag ${flag})
      list(APPEND options "--${flag}=${file}")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    endif()
  endforeach()

  file(REMOVE_RECURSE "${folder}.new")
  execute_process(COMMAND "${sinter}" compile "${model}" --name ${name} --target ${arg_TARGET} ${options}
                          ${arg_OPTIONS} --depfile "${folder}.d" -o "${folder}.new"
                  WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
                  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "sinter_add_model(${name}): sinter ended with ${code}\n${errors}")
  endif()
  string(STRIP "${output}" output)
  string(REPLACE "${folder}.new" "${folder}" output "${output}")
  message(STATUS "sinter: ${output}")
  _sinter_watch("${folder}.d")
  _sinter_update("${folder}")
endfunction()

# A macro, because the bundle's own CMake file enables assembler, which CMake allows in a file's scope only.
macro(sinter_add_model name)
  _sinter_generate(${name} "${CMAKE_CURRENT_BINARY_DIR}/${name}_model" ${ARGN})
  include("${CMAKE_CURRENT_BINARY_DIR}/${name}_model/${name}.cmake")
  set_target_properties(${name} PROPERTIES SINTER_WEIGHTS
                        "${CMAKE_CURRENT_BINARY_DIR}/${name}_model/${name}.weights")
endmacro()
