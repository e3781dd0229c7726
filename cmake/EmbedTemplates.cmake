# Turns the files of templates/, the schema of the configuration and the worker's rights into one C++
# header, so that `hapax new` needs nothing beside the binary. A folder of templates/ is a layer.
#
# Run as a script: cmake -DOUTPUT=… -DFOLDER=… -DSCHEMA=… -DROLES=… -P EmbedTemplates.cmake
cmake_minimum_required(VERSION 3.25)

set(text "// Made by EmbedTemplates.cmake from templates/. Do not edit.\n#pragma once\n\n")
string(APPEND text "namespace hapax::app {\n\nstruct TemplateFile {\n  const char* layer;\n"
                   "  const char* path;\n  const char* text;\n};\n\n"
                   "inline constexpr TemplateFile kTemplate[] = {\n")
function(embed layer path file)
  file(READ "${file}" content)
  string(APPEND text "    {\"${layer}\", \"${path}\", R\"file(${content})file\"},\n")
  set(text "${text}" PARENT_SCOPE)
endfunction()
file(GLOB_RECURSE paths LIST_DIRECTORIES false RELATIVE "${FOLDER}" "${FOLDER}/*" "${FOLDER}/.*")
list(SORT paths)
foreach(path IN LISTS paths)
  string(REGEX MATCH "^([^/]+)/(.+)$" parts "${path}")
  embed("${CMAKE_MATCH_1}" "${CMAKE_MATCH_2}" "${FOLDER}/${path}")
endforeach()
embed(all roles.sql "${ROLES}")
embed(all hapax.schema.json "${SCHEMA}")
string(APPEND text "};\n\n}  // namespace hapax::app\n")
file(WRITE "${OUTPUT}" "${text}")
