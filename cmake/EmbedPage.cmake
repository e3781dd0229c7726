# Turns the files of src/console/page into one C++ header, so that `hapax console` serves them from
# the binary.
#
# Run as a script: cmake -DOUTPUT=… -DFOLDER=… -P EmbedPage.cmake
cmake_minimum_required(VERSION 3.25)

set(text "// Made by EmbedPage.cmake from src/console/page. Do not edit.\n#pragma once\n\n")
string(APPEND text "namespace hapax::console {\n\nstruct PageFile {\n  const char* path;\n"
                   "  const char* text;\n};\n\ninline constexpr PageFile kPage[] = {\n")
file(GLOB paths LIST_DIRECTORIES false RELATIVE "${FOLDER}" "${FOLDER}/*")
list(SORT paths)
foreach(path IN LISTS paths)
  file(READ "${FOLDER}/${path}" content)
  string(APPEND text "    {\"/${path}\", R\"page(${content})page\"},\n")
endforeach()
string(APPEND text "};\n\n}  // namespace hapax::console\n")
file(WRITE "${OUTPUT}" "${text}")
