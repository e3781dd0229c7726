// How a string names a value that is outside of the file:
//
// - ${NAME}: the environment variable, which must be set
// - ${NAME:-default}: the default, if the variable is unset or empty
// - $$: a dollar; a dollar alone is a mistake, because $NAME could pass for a value
// - @/path/to/secret as the whole string: the file's content without its last newline
// - @@ at the start: an @
//
// An inserted value is not expanded again: a password may hold a dollar.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hapax::config {

// The value of an environment variable, or nothing if it is unset.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// The environment of this process.
// Thread safety: safe as long as no thread changes the environment.
Environment process_environment();

// Why a string cannot be expanded: a sentence with names and paths, without values.
struct NotExpanded {
  std::string why;
};

// Adds a warning if other users can read a secret's file (file_text.hpp).
// Throws: std::bad_alloc. Blocks: on the file.
std::variant<std::string, NotExpanded> expand(std::string_view written,
                                              const Environment& environment,
                                              std::vector<std::string>& warnings);

// The file that @/path stands for; "" if the string names none. A caller that keeps the path can
// read a changed value again.
std::string file_named_by(std::string_view written, const Environment& environment);

// The variables whose defaults count in it, because they are unset or empty.
std::vector<std::string> defaulted(std::string_view written, const Environment& environment);

// Whether the value comes from outside the file, wholly or in part.
bool is_indirect(std::string_view written);

// The part of the value that is in the file itself: nothing of an @file, and defaults but no values
// of variables. It tells a password in the file from ${PASSWORD}.
std::string literal_part(std::string_view written);

}  // namespace hapax::config
