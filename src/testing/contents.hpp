// What is in a database, so that two can be compared.
//
// Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "store/testing/test_database.hpp"

namespace hapax::testing {

using Tables = std::map<std::string, store::TableRows>;
using Columns = std::set<std::string>;  // each as "schema.table.column"

// Columns whose values differ though each table has as many rows.
Columns varying_columns(const Tables& one, const Tables& other);

// Columns that a sequence fills.
Columns drawn_columns(const Tables& tables);

// Those of the handler's in which anything differs.
std::vector<std::string> changed_tables(const Tables& before, const Tables& after);

// A sentence for each table that differs, told from `found`: what it has too many, what it lacks.
std::vector<std::string> differences(const Tables& expected, const Tables& found,
                                     const Columns& without);

}  // namespace hapax::testing
