# Runs test_PART.py with PYTHON and the compiler SINTER; says SKIPPED where Python or what it needs is missing.
set(needs numpy)
if(PART STREQUAL "backend")
  set(needs numpy,onnx)
endif()
execute_process(COMMAND ${PYTHON} -c "import ${needs}" RESULT_VARIABLE code OUTPUT_QUIET ERROR_VARIABLE why)
if(NOT code EQUAL 0)
  string(REGEX REPLACE "^.*\n([^\n]+)\n*$" "\\1" why "${why}")
  message("SKIPPED: ${PYTHON} can't import ${needs}: ${code} ${why}")
  return()
endif()
execute_process(COMMAND ${CMAKE_COMMAND} -E env SINTER=${SINTER} PYTHONPATH=${SOURCE_DIR}/python SINTER_SOURCE_DIR=${SOURCE_DIR}
                        PYTHONDONTWRITEBYTECODE=1 ${PYTHON} -W error::ResourceWarning ${CMAKE_CURRENT_LIST_DIR}/test_${PART}.py
                RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "test_${PART}.py failed")
endif()
