#include "testing/contents.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

namespace hapax::testing {
namespace {

using Row = std::map<std::string, std::string>;
using SortedRows = std::multiset<std::string>;

constexpr std::size_t kMaxShown = 3;

std::multiset<std::string> values_of(const store::TableRows& table, const std::string& column) {
  std::multiset<std::string> values;
  for (const Row& row : table.rows)
    if (const auto found = row.find(column); found != row.end()) values.insert(found->second);
  return values;
}

SortedRows rows_of(const Tables& tables, const std::string& name, const Columns& without) {
  SortedRows rows;
  const auto table = tables.find(name);
  if (table == tables.end()) return rows;
  for (Row row : table->second.rows) {
    std::erase_if(row,
                  [&](const auto& value) { return without.contains(name + "." + value.first); });
    rows.insert(nlohmann::json(row).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return rows;
}

// "2 rows too many: {…}, {…}"; empty where there are none.
std::string shown(const SortedRows& rows, const SortedRows& minus, const std::string& what) {
  std::vector<std::string> left;
  std::ranges::set_difference(rows, minus, std::back_inserter(left));
  if (left.empty()) return "";
  std::string text = std::to_string(left.size()) + (left.size() == 1 ? " row " : " rows ") + what;
  for (std::size_t i = 0; i < std::min(left.size(), kMaxShown); ++i)
    text += (i == 0 ? ": " : ", ") + left[i];
  return left.size() > kMaxShown ? text + ", …" : text;
}

std::set<std::string> drawn_values(const Tables& tables) {
  std::set<std::string> values;
  for (const auto& [name, table] : tables)
    for (const std::string& column : table.drawn_columns)
      for (const std::string& value : values_of(table, column)) values.insert(value);
  return values;
}

// Whether two stored results differ in nothing but numbers that sequences drew.
bool differ_as_drawn(const nlohmann::json& one, const nlohmann::json& other,
                     const std::set<std::string>& ones, const std::set<std::string>& others) {
  if (one == other) return true;
  if (one.type() != other.type() || one.size() != other.size()) return false;
  if (one.is_object()) {
    for (const auto& [name, value] : one.items())
      if (!other.contains(name) || !differ_as_drawn(value, other[name], ones, others)) return false;
    return true;
  }
  if (one.is_array())
    return std::equal(one.begin(), one.end(), other.begin(), [&](const auto& a, const auto& b) {
      return differ_as_drawn(a, b, ones, others);
    });
  const auto text = [](const nlohmann::json& leaf) {
    return leaf.is_string() ? leaf.get<std::string>() : leaf.dump();
  };
  return ones.contains(text(one)) && others.contains(text(other));
}

// The same, with the results of `expected` if those of its keys differ only as drawn.
Tables with_results_of(const Tables& expected, Tables found) {
  const auto keys = expected.find(store::kKeysTable);
  if (keys == expected.end() || !found.contains(store::kKeysTable)) return found;
  const auto ones = drawn_values(expected), others = drawn_values(found);
  for (Row& row : found[store::kKeysTable].rows)
    for (const Row& wanted : keys->second.rows) {
      Row same = row;
      same["result"] = wanted.at("result");
      if (same != wanted || row.at("result") == "NULL" || wanted.at("result") == "NULL") continue;
      if (differ_as_drawn(nlohmann::json::parse(wanted.at("result")),
                          nlohmann::json::parse(row.at("result")), ones, others))
        row = wanted;
    }
  return found;
}

}  // namespace

Columns varying_columns(const Tables& one, const Tables& other) {
  Columns varying;
  for (const auto& [name, table] : one) {
    const auto same = other.find(name);
    if (same == other.end() || same->second.rows.size() != table.rows.size() || table.rows.empty())
      continue;
    for (const auto& [column, value] : table.rows.front())
      if (values_of(table, column) != values_of(same->second, column))
        varying.insert(name + "." + column);
  }
  return varying;
}

Columns drawn_columns(const Tables& tables) {
  Columns drawn;
  for (const auto& [name, table] : tables)
    for (const std::string& column : table.drawn_columns) drawn.insert(name + "." + column);
  return drawn;
}

std::vector<std::string> changed_tables(const Tables& before, const Tables& after) {
  std::vector<std::string> changed;
  for (const auto& [name, table] : after)
    if (name != store::kKeysTable && rows_of(before, name, {}) != rows_of(after, name, {}))
      changed.push_back(name);
  return changed;
}

std::vector<std::string> differences(const Tables& expected, const Tables& with_its_results,
                                     const Columns& without) {
  const Tables found = with_results_of(expected, with_its_results);
  std::set<std::string> names;
  for (const auto& [name, table] : expected) names.insert(name);
  for (const auto& [name, table] : found) names.insert(name);
  std::vector<std::string> sentences;
  for (const std::string& name : names) {
    const SortedRows wanted = rows_of(expected, name, without);
    const SortedRows there = rows_of(found, name, without);
    const std::string extra = shown(there, wanted, "too many");
    const std::string missing = shown(wanted, there, "missing");
    if (extra.empty() && missing.empty()) continue;
    sentences.push_back(name + " has " + extra + (extra.empty() || missing.empty() ? "" : "; ") +
                        missing);
  }
  return sentences;
}

}  // namespace hapax::testing
