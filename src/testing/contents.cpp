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

std::vector<std::string> differences(const Tables& expected, const Tables& found,
                                     const Columns& without) {
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
