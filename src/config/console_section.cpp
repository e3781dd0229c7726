// The section "console".
#include "config/rules.hpp"
#include "config/sections.hpp"
#include "key/json_pointer.hpp"

namespace hapax::config {

void read_console(Object& section, Console& console) {
  Reader& reader = section.reader();
  const std::string allowed = "a JSON pointer such as \"/card/number\" or \"/items/*/iban\"";
  if (const auto value = section.find("mask"))
    for (const Value& element : reader.elements(*value, "an array of JSON pointers")) {
      const auto pointer = reader.text(element, allowed);
      if (!pointer) continue;
      if (const auto error = key::json_pattern_error(*pointer))
        reader.refuse(element, allowed + "; " + *error);
      else
        console.mask.push_back(*pointer);
    }
  section.finish();
}

}  // namespace hapax::config
