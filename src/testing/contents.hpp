// What is in a database, so that two can be compared.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "testing/drawn.hpp"

namespace hapax::testing {

// Those of the handler's in which anything differs.
std::vector<std::string> changed_tables(const Tables& before, const Tables& after);

// The columns of times in these tables that hold a value.
Columns times_in(const Tables& tables, const std::vector<std::string>& names);

// A sentence for each table that differs, told from `found`: what it has too many, what it lacks,
// and in which columns. `before`: values drawn earlier stand for themselves.
std::vector<std::string> differences(const Tables& before, const Tables& expected,
                                     const Tables& found, const Columns& without);

}  // namespace hapax::testing
