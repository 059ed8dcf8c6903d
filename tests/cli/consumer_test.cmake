cmake_minimum_required(VERSION 3.25)

# Installs sinter, moves the installed folder, and builds and runs a project that uses it, for MACHINE (host or
# aarch64). Then touches the model: the next build must compile it again.
set(toolchain "")
set(emulator "")
if(MACHINE STREQUAL "aarch64")
  find_program(CROSS_COMPILER aarch64-linux-gnu-g++)
  find_program(QEMU NAMES qemu-aarch64-static qemu-aarch64)
  set(emulator ${QEMU})
  if(NOT CROSS_COMPILER OR NOT QEMU)
    message("SKIPPED: no aarch64-linux-gnu-g++ or no qemu-aarch64")
    return()
  endif()
  set(toolchain -DCMAKE_TOOLCHAIN_FILE=${SOURCE_DIR}/cmake/aarch64-linux-gnu.cmake)
endif()

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\nended with ${code}\n${out}\n${err}")
  endif()
  set(output "${out}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/installed)
file(RENAME ${WORK_DIR}/installed ${WORK_DIR}/moved)
file(COPY ${SOURCE_DIR}/tests/cli/consumer/ DESTINATION ${WORK_DIR}/project)
file(COPY_FILE ${SOURCE_DIR}/examples/digits/digits.onnx ${WORK_DIR}/project/net.onnx)

run(${CMAKE_COMMAND} -S ${WORK_DIR}/project -B ${WORK_DIR}/build -G Ninja -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_PREFIX_PATH=${WORK_DIR}/moved ${toolchain})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${emulator} ${WORK_DIR}/build/consumer)
set(first "${output}")
message("${output}")

# ninja compares whole seconds on some file systems.
execute_process(COMMAND ${CMAKE_COMMAND} -E sleep 1.1)
file(TOUCH ${WORK_DIR}/project/net.onnx)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
if(NOT output MATCHES "sinter: net: ")
  message(FATAL_ERROR "the model changed, but was not compiled again:\n${output}")
endif()
run(${emulator} ${WORK_DIR}/build/consumer)
if(NOT output STREQUAL first)
  message(FATAL_ERROR "another result after the same model was compiled again:\n${first}${output}")
endif()

# In halves, for a board: configured only. The samples' files are watched, and their folders are the project's.
file(MAKE_DIRECTORY ${WORK_DIR}/halves)
file(COPY ${WORK_DIR}/project/net.onnx ${WORK_DIR}/project/sample DESTINATION ${WORK_DIR}/halves)
file(WRITE ${WORK_DIR}/halves/CMakeLists.txt [[
cmake_minimum_required(VERSION 3.16)
project(halves LANGUAGES CXX ASM)
find_package(sinter 0.1 REQUIRED)
sinter_add_model(net MODEL net.onnx DIM "N<=2" TARGET cortex-a76 FP16 FP16_ERROR 0.02 KEEP_F32 /conv2/Conv DATA sample)
]])
run(${CMAKE_COMMAND} -S ${WORK_DIR}/halves -B ${WORK_DIR}/halves/build -G Ninja -DCMAKE_PREFIX_PATH=${WORK_DIR}/moved
    ${toolchain})
file(READ ${WORK_DIR}/halves/build/net_model/net.cpp code)
if(NOT code MATCHES "--fp16 --fp16-error 0.02 --keep-f32[ /\n]+/conv2/Conv" OR NOT code MATCHES "HalfTile")
  message(FATAL_ERROR "FP16, FP16_ERROR and KEEP_F32 did not reach the code")
endif()
file(READ ${WORK_DIR}/halves/build/net_model.d read)
if(NOT read MATCHES "sample/input_0.pb")
  message(FATAL_ERROR "the sample of DATA was not read:\n${read}")
endif()

# Several models as one library; their files are watched. One model for several cores; weights as C.
file(MAKE_DIRECTORY ${WORK_DIR}/several)
file(COPY ${WORK_DIR}/project/net.onnx DESTINATION ${WORK_DIR}/several)
file(COPY_FILE ${WORK_DIR}/project/net.onnx ${WORK_DIR}/several/other.onnx)
file(WRITE ${WORK_DIR}/several/main.cpp [[
#include <cstdio>
#include "eye.h"
#include "net.h"
alignas(64) static unsigned char arena[EYE_ARENA_BYTES], own[NET_ARENA_BYTES];
static float image[64] = {1, 2, 3}, one[10], two[10], three[10];
int main() {
  const eye_net_inputs i1 = {image};
  eye_net_outputs o1 = {};
  const eye_b_inputs i2 = {image, {1, 1, 8, 8}};
  eye_b_outputs o2 = {two, {}};
  const net_inputs i3 = {image};
  net_outputs o3 = {three};
  if (eye_net_run(&i1, &o1, arena) || eye_b_run(&i2, &o2, arena) || net_run(&i3, &o3, own)) return 1;
  for (int k = 0; k < 10; ++k) {
    const float d = o1.logits[k] - two[k], e = o1.logits[k] - three[k];
    if (d > 1e-4f || d < -1e-4f || e > 1e-4f || e < -1e-4f) return 2;
  }
  return one[0] == 0 ? 0 : 3;
}
]])
set(targets avx2,x86-64-v2)
if(MACHINE STREQUAL "aarch64" OR CMAKE_HOST_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(targets cortex-a76,cortex-a53)
endif()
file(WRITE ${WORK_DIR}/several/CMakeLists.txt "
cmake_minimum_required(VERSION 3.16)
project(several LANGUAGES CXX ASM)
find_package(sinter 0.1 REQUIRED)
sinter_add_pipeline(eye MODELS net.onnx b=other.onnx DIM net:N=1 \"b:N<=2\" ALIVE net:logits)
sinter_add_model(net MODEL net.onnx DIM N=1 TARGET ${targets} WEIGHTS c)
add_executable(several main.cpp)
target_link_libraries(several PRIVATE eye net)
")
run(${CMAKE_COMMAND} -S ${WORK_DIR}/several -B ${WORK_DIR}/several/build -G Ninja -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_PREFIX_PATH=${WORK_DIR}/moved ${toolchain})
foreach(line "sinter: eye_net: " "sinter: eye_b: " "sinter: eye: 2 models" "sinter: net: 2 targets")
  if(NOT output MATCHES "${line}")
    message(FATAL_ERROR "no ${line} in\n${output}")
  endif()
endforeach()
run(${CMAKE_COMMAND} --build ${WORK_DIR}/several/build)
run(${emulator} ${WORK_DIR}/several/build/several)
execute_process(COMMAND ${CMAKE_COMMAND} -E sleep 1.1)
file(TOUCH ${WORK_DIR}/several/other.onnx)
run(${CMAKE_COMMAND} --build ${WORK_DIR}/several/build)
if(NOT output MATCHES "sinter: eye: 2 models")
  message(FATAL_ERROR "a model of several changed, but was not compiled again:\n${output}")
endif()
