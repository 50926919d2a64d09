include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
# find_package(baregpu) gives baregpu::hcq and so on.
foreach(folder options drivers am compiler hcq mock)
  set_target_properties(baregpu_${folder} PROPERTIES EXPORT_NAME ${folder})
endforeach()
install(TARGETS baregpu_options baregpu_drivers baregpu_am baregpu_compiler baregpu_hcq baregpu_mock
        EXPORT baregpu-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS baregpu RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
foreach(folder drivers am hcq compiler mock)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/baregpu FILES_MATCHING PATTERN "*.hpp")
endforeach()
install(EXPORT baregpu-targets NAMESPACE baregpu:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/baregpu)
configure_package_config_file(cmake/baregpu-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/baregpu-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/baregpu)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/baregpu-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/baregpu-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/baregpu-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/baregpu)
