# Turns the files of templates/handler, the schema of the configuration and the worker's rights into
# one C++ header, so that `hapax new` needs nothing beside the binary.
#
# Run as a script: cmake -DOUTPUT=… -DFOLDER=… -DSCHEMA=… -DROLES=… -P EmbedTemplates.cmake
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
foreach(path IN ITEMS "${SCHEMA}" "${ROLES}")
  get_filename_component(name "${path}" NAME)
  file(READ "${path}" content)
  string(APPEND text "    {\"${name}\", R\"file(${content})file\"},\n")
endforeach()
string(APPEND text "};\n\n}  // namespace hapax::app\n")
file(WRITE "${OUTPUT}" "${text}")
