# Debian packages, by cmake --workflow --preset package: hapax, and libhapax-dev to build handlers.
# Needs what scripts/install_packages.sh package installs.

set(CPACK_PACKAGE_CONTACT "The maintainers of hapax <maintainers@hapax.invalid>")
set(made ${PROJECT_BINARY_DIR}/package)
file(MAKE_DIRECTORY ${made})

# The man page and the completions are what --help prints, so they are made from the binary.
find_program(HAPAX_PYTHON3 python3)
if(HAPAX_PYTHON3 AND NOT HAPAX_SANITIZE)
  set(command_docs ${made}/hapax.1.gz ${made}/hapax.bash ${made}/_hapax)
  add_custom_command(OUTPUT ${command_docs}
    COMMAND ${HAPAX_PYTHON3} -B ${PROJECT_SOURCE_DIR}/scripts/command_docs.py
            $<TARGET_FILE:hapax_binary> ${made}
    DEPENDS hapax_binary scripts/command_docs.py
    COMMENT "Writing the man page and the completions")
  add_custom_target(hapax_command_docs ALL DEPENDS ${command_docs})
  install(FILES ${made}/hapax.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT hapax)
  install(FILES ${made}/hapax.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    RENAME hapax COMPONENT hapax)
  install(FILES ${made}/_hapax DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
    COMPONENT hapax)
endif()
install(FILES deploy/systemd/hapax@.service DESTINATION lib/systemd/system COMPONENT hapax
  EXCLUDE_FROM_ALL)  # it names /usr/bin

configure_file(deploy/debian/changelog.in ${made}/changelog @ONLY)
execute_process(COMMAND gzip -9nf ${made}/changelog COMMAND_ERROR_IS_FATAL ANY)
foreach(package hapax libhapax-dev)
  install(FILES ${made}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
    COMPONENT ${package} EXCLUDE_FROM_ALL)
  install(FILES deploy/debian/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package}
    COMPONENT ${package} EXCLUDE_FROM_ALL)
endforeach()
# Of the library; CPack strips what runs. The names that the linker needs stay.
install(CODE "file(GLOB archives \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libhapax*.a)
  execute_process(COMMAND ${CMAKE_STRIP} --strip-debug \${archives} COMMAND_ERROR_IS_FATAL ANY)"
  COMPONENT libhapax-dev EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
  GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL hapax libhapax-dev)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_HAPAX_PACKAGE_NAME hapax)
set(CPACK_DEBIAN_HAPAX_PACKAGE_SECTION net)
set(CPACK_DEBIAN_HAPAX_PACKAGE_SHLIBDEPS ON)
# A package with a plugin depends on this, so that apt keeps it from a hapax that would refuse it.
set(CPACK_DEBIAN_HAPAX_PACKAGE_PROVIDES hapax-abi-${HAPAX_PLUGIN_ABI})
# Workers are instances of a unit, which systemd's own triggers leave alone.
set(control ${PROJECT_SOURCE_DIR}/deploy/debian)
set(CPACK_DEBIAN_HAPAX_PACKAGE_CONTROL_EXTRA ${control}/postinst ${control}/prerm ${control}/postrm)
set(CPACK_DEBIAN_HAPAX_PACKAGE_SUGGESTS "postgresql, libhapax-dev")
set(CPACK_DEBIAN_HAPAX_DESCRIPTION "Kafka consumers with exactly-once effects in PostgreSQL
 A worker reads Kafka topics and calls handlers, which are plugins. Each
 message takes effect in PostgreSQL exactly once, with retries, dead
 letters and halts. The program also shows and steers the group.")

set(CPACK_DEBIAN_LIBHAPAX-DEV_PACKAGE_NAME libhapax-dev)
set(CPACK_DEBIAN_LIBHAPAX-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBHAPAX-DEV_PACKAGE_DEPENDS "nlohmann-json3-dev (>= 3.11)")
# For what is more than a plugin: tests, and handlers linked into a binary of their own.
set(CPACK_DEBIAN_LIBHAPAX-DEV_PACKAGE_RECOMMENDS "cmake, pkgconf, libcpp-httplib-dev, libcurl4-openssl-dev, libpq-dev, \
libpqxx-dev, libprotobuf-dev, prometheus-cpp-dev, librdkafka-dev, libspdlog-dev, libssl-dev, postgresql")
set(CPACK_DEBIAN_LIBHAPAX-DEV_DESCRIPTION "handlers for hapax: headers, library, test kit
 What a handler of hapax is built and tested with: headers, a CMake package
 with hapax_add_handler(), the static library and the test kit.")
include(CPack)
