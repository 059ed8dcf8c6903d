# Lays out the test models, once.
if(NOT EXISTS ${ARCHIVE}/unpack.sh)
  message("SKIPPED: no test models at ${ARCHIVE}")
  return()
endif()
execute_process(COMMAND sh ${ARCHIVE}/unpack.sh ${UNPACKED} COMMAND_ERROR_IS_FATAL ANY)
