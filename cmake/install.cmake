# What `cmake --install` puts where. Components: `compiler`, the program; `files`, all beside it; `licences`, for the
# Python wheel, those of what is inside it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME files)

install(TARGETS sinter RUNTIME DESTINATION bin COMPONENT compiler)

# find_package(sinter) with sinter_add_model(), and the toolchain file.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/sinterConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES cmake/sinterConfig.cmake cmake/sinterAddModel.cmake cmake/aarch64-linux-gnu.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/sinterConfigVersion.cmake DESTINATION lib/cmake/sinter)

# The runtime headers, for applications that take sinter/generate.h, sinter/pool.h or sinter/thread_pool.h from here.
# (Bundles have their own, from inside the compiler.) sinter::headers and pkg-config know where they are; pkg-config
# also the compiler and the CMake files.
install(FILES ${SINTER_RUNTIME} DESTINATION include/sinter)
configure_file(cmake/sinter.pc.in ${CMAKE_CURRENT_BINARY_DIR}/sinter.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sinter.pc DESTINATION share/pkgconfig)

# The man page and completions are the help, as the program that was built tells it (under an emulator, where it is
# another processor's).
set(manual ${CMAKE_CURRENT_BINARY_DIR}/manual)
install(CODE "file(MAKE_DIRECTORY \"${manual}\")
              foreach(kind man bash zsh fish)
                execute_process(COMMAND ${CMAKE_CROSSCOMPILING_EMULATOR} \"$<TARGET_FILE:sinter>\" manual \${kind}
                                        -o \"${manual}/\${kind}\" COMMAND_ERROR_IS_FATAL ANY)
              endforeach()")
install(FILES ${manual}/man DESTINATION share/man/man1 RENAME sinter.1)
install(FILES ${manual}/bash DESTINATION share/bash-completion/completions RENAME sinter)
install(FILES ${manual}/zsh DESTINATION share/zsh/vendor-completions RENAME _sinter)
install(FILES ${manual}/fish DESTINATION share/fish/vendor_completions.d RENAME sinter.fish)

install(FILES LICENSE CHANGELOG.md DESTINATION share/doc/sinter)

foreach(package libprotobuf-dev libonnx-dev libfmt-dev nlohmann-json3-dev libcli11-dev libstb-dev libjs-d3)
  if(EXISTS /usr/share/doc/${package}/copyright)
    install(FILES /usr/share/doc/${package}/copyright DESTINATION share/doc/sinter/third-party RENAME ${package}
            COMPONENT licences EXCLUDE_FROM_ALL)
  endif()
endforeach()

# `cpack` in the build folder: a .deb of this machine's release.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME sinter)
set(CPACK_PACKAGE_CONTACT "the sinter project")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiles an ONNX model into C++ of its own")
set(CPACK_COMPONENTS_ALL compiler files)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_NAME sinter)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "g++")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, g++-aarch64-linux-gnu, qemu-user-static, openssh-client")
include(CPack)
