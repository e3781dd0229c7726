# One object library a folder of src/, each with only the external libraries that are its own.

# What every target of the project is compiled with.
add_library(hapax_options INTERFACE)
target_compile_options(hapax_options INTERFACE
  -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wno-missing-field-initializers
  $<$<BOOL:${HAPAX_WARNINGS_AS_ERRORS}>:-Werror>)
# By default g++ collects its garbage from 128 MB on, an eighth of the time of a build. With this it
# needs a quarter more memory, 1.7 GB for the largest unit.
target_compile_options(hapax_options INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=500000>)
# Clang proves that code which uses a guarded member holds its mutex (src/sync/mutex.hpp).
target_compile_options(hapax_options INTERFACE
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety -Werror=thread-safety>)
if(HAPAX_SANITIZE)
  target_compile_options(hapax_options INTERFACE
    -fsanitize=${HAPAX_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(hapax_options INTERFACE -fsanitize=${HAPAX_SANITIZE})
endif()
if(HAPAX_SANITIZE MATCHES thread)
  add_library(hapax_c11_threads SHARED ${CMAKE_CURRENT_LIST_DIR}/c11_threads.cpp)
  target_link_libraries(hapax_c11_threads PRIVATE Threads::Threads)
  target_link_libraries(hapax_options INTERFACE hapax_c11_threads)
endif()

# hapax_layer(<folder> [ROOMS …] [LIBRARIES …]): all .cpp of src/<folder>, and of these folders in it.
function(hapax_layer folder)
  cmake_parse_arguments(LAYER "" "" "ROOMS;LIBRARIES" ${ARGN})
  set(patterns ${PROJECT_SOURCE_DIR}/src/${folder}/*.cpp)
  foreach(room IN LISTS LAYER_ROOMS)
    list(APPEND patterns ${PROJECT_SOURCE_DIR}/src/${folder}/${room}/*.cpp)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set(name hapax_${folder})
  add_library(${name} OBJECT ${sources})
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_link_libraries(${name} PUBLIC nlohmann_json::nlohmann_json Threads::Threads
    PRIVATE $<BUILD_INTERFACE:hapax_options> ${LAYER_LIBRARIES})
endfunction()

# What most files include.
set(HAPAX_COMMON_HEADERS <algorithm> <atomic> <charconv> <chrono> <condition_variable> <deque>
  <filesystem> <functional> <map> <memory> <mutex> <optional> <random> <set> <span> <sstream>
  <string> <thread> <variant> <vector> <nlohmann/json.hpp>)

# hapax_precompile(TARGETS <of equal options>… HEADERS <header>…): these headers are parsed once for all
# of the targets. Only in a unity build: a file that is compiled alone shows which header it forgot.
function(hapax_precompile)
  cmake_parse_arguments(ARG "" "" "TARGETS;HEADERS" ${ARGN})
  if(NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  list(POP_FRONT ARG_TARGETS first)
  target_precompile_headers(${first} PRIVATE ${ARG_HEADERS})
  foreach(target IN LISTS ARG_TARGETS)
    target_precompile_headers(${target} REUSE_FROM ${first})
  endforeach()
endfunction()
