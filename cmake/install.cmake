# What `cmake --install` puts where. Components: `compiler`, the program; `files`, all beside it; `portable`, for the
# Python wheel, the program with little to be shared and the licences of what is in it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME files)

install(TARGETS sinter RUNTIME DESTINATION bin COMPONENT compiler)

# find_package(sinter) with sinter_add_model(), and the toolchain file.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/sinterConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES cmake/sinterConfig.cmake cmake/sinterAddModel.cmake cmake/aarch64-linux-gnu.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/sinterConfigVersion.cmake DESTINATION lib/cmake/sinter)

# The runtime headers, for applications that take sinter/pool.h or sinter/thread_pool.h from here. (Bundles have
# their own, from inside the compiler.) pkg-config knows where they are, and the compiler and the CMake files.
install(FILES ${SINTER_RUNTIME} DESTINATION include/sinter)
configure_file(cmake/sinter.pc.in ${CMAKE_CURRENT_BINARY_DIR}/sinter.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sinter.pc DESTINATION share/pkgconfig)

install(FILES LICENSE CHANGELOG.md DESTINATION share/doc/sinter)

if(TARGET sinter_portable)
  install(TARGETS sinter_portable RUNTIME DESTINATION bin COMPONENT portable EXCLUDE_FROM_ALL)
  foreach(package libprotobuf-dev libonnx-dev libfmt-dev libblis-serial-dev nlohmann-json3-dev libcli11-dev libstb-dev)
    if(EXISTS /usr/share/doc/${package}/copyright)
      install(FILES /usr/share/doc/${package}/copyright DESTINATION share/doc/sinter/third-party RENAME ${package}
              COMPONENT portable EXCLUDE_FROM_ALL)
    endif()
  endforeach()
endif()
