// What to look at if PostgreSQL refuses a statement of hapax's own.
#pragma once

#include <string>
#include <string_view>

namespace hapax::store {

// In parentheses, behind a space; or empty.
inline std::string advice_on(std::string_view sqlstate) {
  if (sqlstate.starts_with("42"))
    return " (does the worker's role have its rights? See `hapax check`)";
  if (sqlstate == "57014") return " (it took longer than statement_timeout, or was cancelled)";
  if (sqlstate == "55P03") return " (it waited for a lock for longer than lock_timeout)";
  return "";
}

}  // namespace hapax::store
