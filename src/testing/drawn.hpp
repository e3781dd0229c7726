// Values that a delivery drew: uuids, and numbers of sequences. A rollback leaves a gap, so two
// good deliveries draw two values for one row. They are the same effect if they have the same role.
//
// Pure.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "store/testing/test_database.hpp"

namespace hapax::testing {

using Tables = std::map<std::string, store::TableRows>;
using Columns = std::set<std::string>;  // each as "schema.table.column"

// A value and its source.
using Drawn = std::pair<std::string, std::string>;

// Each new value's role: two values with one role stand in the same columns of rows that are equal.
using Roles = std::map<Drawn, int>;

struct TwoRoles {
  Roles one, other;
};

// Of the values that `one` and `other` have beyond `before`.
TwoRoles roles_of_new(const Tables& before, const Tables& one, const Tables& other,
                      const Columns& without);

// A row as it is compared: the role instead of a new value, and no times. Whether there is a time
// counts.
nlohmann::json comparable(const std::string& name, const store::TableRows& table,
                          const store::TableRow& row, const Roles& roles, const Columns& without);

// Whether two JSON documents differ in nothing but new values of one role, paired one to one.
bool same_but_for_new(const nlohmann::json& one, const nlohmann::json& other,
                      const TwoRoles& roles);

}  // namespace hapax::testing
