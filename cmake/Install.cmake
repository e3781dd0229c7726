# cmake --install: the binary, the public headers, the library behind hapax::Main, the CMake package
# for handler projects, and what operators need beside it. A component is a package (Package.cmake).
include(CMakePackageConfigHelpers)

file(STRINGS include/hapax/plugin.hpp abi REGEX "^#define HAPAX_ABI ")
string(REGEX MATCH "[0-9]+" HAPAX_PLUGIN_ABI "${abi}")
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/hapax)
set_target_properties(hapax PROPERTIES EXPORT_NAME static)
set_target_properties(hapax_headers PROPERTIES EXPORT_NAME headers)
set_target_properties(hapax_test_kit PROPERTIES EXPORT_NAME test_kit)
install(TARGETS hapax hapax_headers hapax_test_kit EXPORT hapax-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libhapax-dev)
install(TARGETS hapax_binary RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT hapax)
install(TARGETS payments LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hapax COMPONENT example)
install(DIRECTORY include/hapax DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libhapax-dev)
install(FILES src/config/hapax.schema.json sql/roles.sql sql/operator.psql sql/erase.psql
  DESTINATION ${CMAKE_INSTALL_DATADIR}/hapax COMPONENT hapax)
# Messages name these pages by their path from here.
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT hapax)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT hapax
  PATTERN lab EXCLUDE)

install(EXPORT hapax-targets NAMESPACE hapax:: DESTINATION ${package} COMPONENT libhapax-dev)
configure_package_config_file(cmake/hapax-config.cmake.in
  ${PROJECT_BINARY_DIR}/hapax-config.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/hapax-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/hapax-config.cmake
  ${PROJECT_BINARY_DIR}/hapax-config-version.cmake cmake/AddHandler.cmake DESTINATION ${package}
  COMPONENT libhapax-dev)
