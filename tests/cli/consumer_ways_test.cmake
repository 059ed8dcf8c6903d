cmake_minimum_required(VERSION 3.16)

# The ways to use sinter from CMake, the project's own CMake being CMAKE (any from 3.16 on): installed, found by a
# toolchain that looks for packages in the board's file system alone, and as a part of the project; all below a folder
# whose name has blanks and brackets. A change of each file that the model is made from must change the result.
set(folder "${WORK_DIR}/my [old] board (1)+")
file(REMOVE_RECURSE "${WORK_DIR}")
file(MAKE_DIRECTORY "${folder}")

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nended with ${code}\n${out}\n${err}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

# Builds the project in `build`, whose program must print `wanted`.
function(expect build wanted)
  run("${CMAKE}" --build "${build}")
  run("${build}/ways")
  if(NOT output STREQUAL "${wanted} \n")
    message(FATAL_ERROR "${build}: ${output}instead of ${wanted}")
  endif()
endfunction()

# Writes a file a second later: Ninja compares whole seconds on some file systems.
function(change file text)
  execute_process(COMMAND "${CMAKE_COMMAND}" -E sleep 1.1)
  file(WRITE "${file}" "${text}")
endfunction()

run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${folder}/sinter")
foreach(file lib/cmake/sinter/aarch64-linux-gnu.cmake share/doc/sinter/LICENSE)
  if(NOT EXISTS "${folder}/sinter/${file}")
    message(FATAL_ERROR "${file} is not installed")
  endif()
endforeach()
set(project "${folder}/project")
file(COPY "${SOURCE_DIR}/tests/cli/consumer_ways/" DESTINATION "${project}")

set(build "${folder}/build")
run("${CMAKE}" -S "${project}" -B "${build}" -G Ninja "-DCMAKE_PREFIX_PATH=${folder}/sinter")
expect("${build}" "11 12 13 14")
file(READ "${project}/scale.c" source)
string(REPLACE "10 *" "20 *" source "${source}")
change("${project}/scale.c" "${source}")
expect("${build}" "21 22 23 24")
change("${project}/net.data" "AAAAAAAAAAAAAAAA")  # four times 12.0784
expect("${build}" "32.0784 32.0784 32.0784 32.0784")
change("${project}/tuning.json" "no tuning file")
execute_process(COMMAND "${CMAKE}" --build "${build}" RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(code EQUAL 0 OR NOT out MATCHES "tuning.json is no")
  message(FATAL_ERROR "a broken tuning file was not read again:\n${out}")
endif()
file(COPY "${SOURCE_DIR}/tests/cli/consumer_ways/" DESTINATION "${project}")

# Nothing has changed: nothing is compiled.
file(COPY "${SOURCE_DIR}/tests/cli/consumer_ways/" DESTINATION "${folder}/same")
run("${CMAKE}" -S "${folder}/same" -B "${folder}/same_build" -G Ninja "-Dsinter_DIR=${folder}/sinter/lib/cmake/sinter")
expect("${folder}/same_build" "11 12 13 14")
run("${CMAKE}" "${folder}/same_build")
run("${CMAKE}" --build "${folder}/same_build")
if(NOT output MATCHES "no work to do")
  message(FATAL_ERROR "configured again, it was built again:\n${output}")
endif()

# A toolchain for a board whose files lie in `board`.
file(MAKE_DIRECTORY "${folder}/board")
file(WRITE "${folder}/toolchain.cmake" "set(CMAKE_FIND_ROOT_PATH \"${folder}/board\")\n"
     "set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)\nset(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)\n")
run("${CMAKE}" -S "${folder}/same" -B "${folder}/only_build" -G Ninja
    "-DCMAKE_TOOLCHAIN_FILE=${folder}/toolchain.cmake" "-Dsinter_DIR=${folder}/sinter/lib/cmake/sinter")
expect("${folder}/only_build" "11 12 13 14")

# As a part; the compiler is not built once more here.
run("${CMAKE}" -S "${folder}/same" -B "${folder}/part_build" -G Ninja "-DSINTER_SOURCE=${SOURCE_DIR}"
    "-DSINTER_EXECUTABLE=${folder}/sinter/bin/sinter")
expect("${folder}/part_build" "11 12 13 14")
