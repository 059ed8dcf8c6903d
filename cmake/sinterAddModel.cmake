# sinter_add_model(NAME MODEL FILE
#                  [TARGET CPU] [DIM "N<=8"...] [MAX_TRIPS N] [CONST NAME=VALUE...] [ONLY OUTPUT...]
#                  [STATE OUTPUT=INPUT...] [STATE_INIT INPUT=VALUE...] [PRE "INPUT: WORDS"...] [POST "OUTPUT: WORDS"...]
#                  [WEIGHTS embed|c|file] [MAX_RAM 8M] [MAX_STACK 16K] [MAX_FLASH 4M] [THREADS K]
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
#
# sinter_add_pipeline(NAME MODELS [A=]FILE [B=]FILE... [ALIVE A:OUTPUT[=B:INPUT]...] [the options above])
#
# Several models as one library, with one arena and equal weights once; the functions are NAME_A_run and so on. A model
# is called as its file, or as A= says. Options that speak of one model's names begin with it: DIM "A:N<=8", CONST, ONLY,
# STATE, STATE_INIT, KEEP_F32, DATA "A:folder"; the others hold for all.
#
# Beside them there is the target sinter::headers, for programs that include sinter/generate.h or another header that
# bundles don't bring along.
#
# From CMake 3.16 on.
include_guard(GLOBAL)
cmake_policy(VERSION 3.16...3.25)

# In the source tree they are in runtime/, installed in include/.
if(NOT TARGET sinter::headers)
  add_library(sinter::headers INTERFACE IMPORTED GLOBAL)
  get_filename_component(_sinter_headers "${CMAKE_CURRENT_LIST_DIR}/../runtime" ABSOLUTE)
  if(NOT EXISTS "${_sinter_headers}/sinter")
    get_filename_component(_sinter_headers "${CMAKE_CURRENT_LIST_DIR}/../../../include" ABSOLUTE)
  endif()
  set_target_properties(sinter::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_sinter_headers}")
  unset(_sinter_headers)
endif()

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
                        "DIM;CONST;ONLY;STATE;STATE_INIT;PRE;POST;KEEP_F32;DATA;OPTIONS;MODELS;ALIVE")
  set(function "sinter_add_model(${name})")
  if(arg_MODELS)
    set(function "sinter_add_pipeline(${name})")
  elseif(NOT arg_MODEL)
    message(FATAL_ERROR "${function}: no MODEL")
  endif()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${function}: unknown arguments ${arg_UNPARSED_ARGUMENTS}")
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

  set(models "")  # [A=]FILE, the file with its folder
  foreach(word IN LISTS arg_MODEL arg_MODELS)
    set(called "")
    if(arg_MODELS AND word MATCHES "^([A-Za-z_][A-Za-z0-9_]*)=(.*)$")
      set(called "${CMAKE_MATCH_1}=")
      set(word "${CMAKE_MATCH_2}")
    endif()
    get_filename_component(file "${word}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND models "${called}${file}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  endforeach()
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
  foreach(value IN LISTS arg_STATE_INIT)
    list(APPEND options "--state-init=${value}")
  endforeach()
  foreach(words IN LISTS arg_PRE)
    list(APPEND options "--pre=${words}")
  endforeach()
  foreach(words IN LISTS arg_POST)
    list(APPEND options "--post=${words}")
  endforeach()
  if(arg_FP16)
    list(APPEND options "--fp16")
  endif()
  foreach(node IN LISTS arg_KEEP_F32)
    list(APPEND options "--keep-f32=${node}")
  endforeach()
  foreach(sample IN LISTS arg_DATA)
    set(of_model "")
    if(arg_MODELS AND sample MATCHES "^([A-Za-z_][A-Za-z0-9_]*:)(.*)$")
      set(of_model "${CMAKE_MATCH_1}")
      set(sample "${CMAKE_MATCH_2}")
    endif()
    get_filename_component(sample "${sample}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
    list(APPEND options "--data=${of_model}${sample}")
  endforeach()
  foreach(tensor IN LISTS arg_ALIVE)
    list(APPEND options "--alive=${tensor}")
  endforeach()
  foreach(option MAX_TRIPS WEIGHTS MAX_RAM MAX_STACK MAX_FLASH THREADS FP16_ERROR)
    if(arg_${option})
      string(TOLOWER ${option} flag)
      string(REPLACE _ - flag ${flag})
      list(APPEND options "--${flag}=${arg_${option}}")
    endif()
  endforeach()
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
  execute_process(COMMAND "${sinter}" compile ${models} --name ${name} --target ${arg_TARGET} ${options}
                          ${arg_OPTIONS} --depfile "${folder}.d" -o "${folder}.new"
                  WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
                  RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${function}: sinter ended with ${code}\n${errors}")
  endif()
  string(STRIP "${output}" output)
  string(REPLACE "${folder}.new" "${folder}" output "${output}")
  string(REPLACE "\n" "\n-- sinter: " output "${output}")
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

macro(sinter_add_pipeline name)
  sinter_add_model(${name} ${ARGN})
endmacro()
