# Turns the files of templates/handler, and the schema of the configuration, into one C++ header, so
# that `hapax new` needs nothing beside the binary.
#
# Run as a script: cmake -DOUTPUT=… -DFOLDER=… -DSCHEMA=… -P EmbedTemplates.cmake
cmake_minimum_required(VERSION 3.25)

set(text "// Made by EmbedTemplates.cmake from templates/handler. Do not edit.\n#pragma once\n\n")
string(APPEND text "namespace hapax::app {\n\nstruct TemplateFile {\n  const char* path;\n"
                   "  const char* text;\n};\n\ninline constexpr TemplateFile kTemplate[] = {\n")
file(GLOB_RECURSE paths LIST_DIRECTORIES false RELATIVE "${FOLDER}" "${FOLDER}/*" "${FOLDER}/.*")
list(SORT paths)
foreach(path IN LISTS paths)
  file(READ "${FOLDER}/${path}" content)
  string(APPEND text "    {\"${path}\", R\"file(${content})file\"},\n")
endforeach()
file(READ "${SCHEMA}" content)
string(APPEND text "    {\"hapax.schema.json\", R\"file(${content})file\"},\n")
string(APPEND text "};\n\n}  // namespace hapax::app\n")
file(WRITE "${OUTPUT}" "${text}")
