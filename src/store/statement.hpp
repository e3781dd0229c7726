// One SQL statement of hapax's own, or one migration: text that sql/ and migrations/ hold.
#pragma once

#include <string_view>

namespace hapax::store {

// Prepared under its name once a connection, the first time it is used.
struct Statement {
  const char* name;
  const char* text;
};

struct Migration {
  int number;
  const char* name;
  const char* up;
  const char* down;
};

}  // namespace hapax::store
