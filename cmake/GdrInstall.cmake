# cmake --install: headers, both libraries, the program, the shipped configurations, and what find_package(gdrjit) and
# pkg-config read. The tree may be moved after installation: nothing in it holds an absolute path.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/gdrjit")
install(TARGETS gdrjit_static gdrjit_shared EXPORT gdrjitTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT gdrjitTargets NAMESPACE gdrjit:: DESTINATION "${package_dir}")
if(TARGET gdrjit)
  install(TARGETS gdrjit RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/include/gdr" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/configs" DESTINATION "${CMAKE_INSTALL_DATADIR}/gdrjit")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/gdrjitConfig.cmake.in"
                              "${PROJECT_BINARY_DIR}/gdrjitConfig.cmake" INSTALL_DESTINATION "${package_dir}")
# Below 1.0 a new minor version may break callers.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/gdrjitConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/gdrjitConfig.cmake" "${PROJECT_BINARY_DIR}/gdrjitConfigVersion.cmake"
        DESTINATION "${package_dir}")

file(RELATIVE_PATH pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file("${CMAKE_CURRENT_LIST_DIR}/gdrjit.pc.in" "${PROJECT_BINARY_DIR}/gdrjit.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/gdrjit.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
