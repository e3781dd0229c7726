// Why PostgreSQL could not be reached, as one line that also says how to mend it. libpq gives
// neither a code nor an SQLSTATE for it, so what it advises goes by libpq's words; nothing but the
// advice does.
#pragma once

#include <string>

namespace hapax::store {

// `libpq`: its message, of one or several lines. The result is one line, libpq's words first.
// Thread safety: pure.
std::string explain_connect_error(const std::string& libpq);

}  // namespace hapax::store
