// Why PostgreSQL could not be reached, as one line that also tells how to fix it. libpq gives
// neither a code nor an SQLSTATE, so the advice depends on libpq's words. Nothing else does.
#pragma once

#include <string>
#include <string_view>

namespace hapax::store {

// `libpq`: its message, of one or several lines. Returns one line that begins with libpq's words.
// Thread safety: pure.
std::string explain_connect_error(const std::string& libpq);

// An outage in words.
struct Outage {
  std::string line;   // for the log: the error, and what to do
  std::string shown;  // for readiness: the same without PostgreSQL's words, which may quote data
};

// `sqlstate`: "" if the connection is gone or could not be made. `text`: the error.
// Thread safety: pure.
Outage explain_outage(std::string_view sqlstate, const std::string& text);

}  // namespace hapax::store
