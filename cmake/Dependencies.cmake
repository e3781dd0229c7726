# Everything that hapax builds on, from the distribution's packages. librdkafka (Debian 12) and
# libpqxx (both) have no CMake package, so pkg-config finds them.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(spdlog REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Boost 1.74 CONFIG REQUIRED)  # headers only
find_path(VALIJSON valijson/validator.hpp REQUIRED)  # headers only
find_package(CURL REQUIRED)
# Linked statically, so that no plugin meets it: a plugin may bring another version of its own.
set(Protobuf_USE_STATIC_LIBS ON)
find_package(Protobuf 3.21 REQUIRED)
find_path(PROTOBUF_PARSER google/protobuf/compiler/parser.h REQUIRED)
pkg_check_modules(RDKAFKA REQUIRED IMPORTED_TARGET rdkafka>=2.0.2)
pkg_check_modules(PQXX REQUIRED IMPORTED_TARGET libpqxx>=6.4)
pkg_check_modules(PQ REQUIRED IMPORTED_TARGET libpq>=14)
pkg_check_modules(PROMETHEUS REQUIRED IMPORTED_TARGET prometheus-cpp-core)
pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)

# By the compiler's own list of headers: otherwise ccache lets the preprocessor read each file first.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1
      CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()
