# hapax_add_handler(<name> <source>…): a plugin for `hapax run --plugin` and the routes' "plugin".
#
# The file is called lib<name>.so. Only the HAPAX_PLUGIN(…) line is visible from outside, so that
# two plugins with a class of one name do not meet, nor do variables of their static libraries. So
# this line stands in a source of the plugin. Link what else it needs as with any target.
function(hapax_add_handler name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE hapax::headers)
  target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL)
  set_target_properties(${name} PROPERTIES PREFIX lib SUFFIX .so
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()
