#include "testing/contents.hpp"

#include <algorithm>
#include <iterator>
#include <map>

namespace hapax::testing {
namespace {

using nlohmann::json;
using store::TableRow;
using SortedRows = std::multiset<json>;

constexpr std::size_t kMaxShown = 3;

std::string shown(const json& value) {
  if (value.is_null()) return "NULL";
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

SortedRows rows_of(const Tables& tables, const std::string& name, const Roles& roles,
                   const Columns& without) {
  SortedRows rows;
  if (const auto table = tables.find(name); table != tables.end())
    for (const TableRow& row : table->second.rows)
      rows.insert(comparable(name, table->second, row, roles, without));
  return rows;
}

std::vector<json> minus(const SortedRows& rows, const SortedRows& others) {
  std::vector<json> left;
  std::ranges::set_difference(rows, others, std::back_inserter(left));
  return left;
}

// "2 rows too many: {…}, {…}"; empty if there are none.
std::string text_of(const std::vector<json>& rows, const std::string& what) {
  if (rows.empty()) return "";
  std::string text = std::to_string(rows.size()) + (rows.size() == 1 ? " row " : " rows ") + what;
  for (std::size_t i = 0; i < std::min(rows.size(), kMaxShown); ++i)
    text += (i == 0 ? ": " : ", ") + shown(rows[i]);
  return rows.size() > kMaxShown ? text + ", …" : text;
}

// A time that is there is left out.
std::string shown(const json& row, const std::string& column) {
  return row.contains(column) ? shown(row[column]) : "a time";
}

std::set<std::string> differing_columns(const json& one, const json& other) {
  std::set<std::string> columns;
  for (const auto& [row, like] : {std::pair(&one, &other), std::pair(&other, &one)})
    for (const auto& [column, value] : row->items())
      if (!like->contains(column) || (*like)[column] != value) columns.insert(column);
  return columns;
}

// "; public.payments.amount is 7, not 9": if a row is there in another form.
std::string columns_text(const std::string& name, const std::vector<json>& extra,
                         const std::vector<json>& missing) {
  if (extra.empty() || extra.size() != missing.size()) return "";
  const auto like = std::ranges::min_element(
      missing, {}, [&](const json& row) { return differing_columns(extra.front(), row).size(); });
  std::string text;
  for (const std::string& column : differing_columns(extra.front(), *like))
    text += "; " + name + "." + column + " is " + shown(extra.front(), column) + ", not " +
            shown(*like, column);
  return text;
}

// Makes a JSON text the expected one if nothing but new drawn values differs.
void take_over(const Tables& expected, Tables& found, const std::string& name,
               const std::string& column, const TwoRoles& roles) {
  const auto wanted = expected.find(name);
  const auto there = found.find(name);
  if (wanted == expected.end() || there == found.end()) return;
  // Rows whose other columns are the same. Comparing each row with each takes minutes of thousands.
  const auto others = [&](TableRow row) {
    row[column].reset();
    return row;
  };
  std::map<TableRow, std::vector<const TableRow*>> candidates;
  for (const TableRow& like : wanted->second.rows) candidates[others(like)].push_back(&like);
  for (TableRow& row : there->second.rows) {
    const auto alike = candidates.find(others(row));
    if (alike == candidates.end()) continue;
    for (const TableRow* like : alike->second) {
      const auto& text = row.at(column);
      const auto& other = like->at(column);
      if (!text || !other) continue;
      const json one = json::parse(*other, nullptr, false);
      const json two = json::parse(*text, nullptr, false);
      if (one.is_discarded() || two.is_discarded() || !same_but_for_new(one, two, roles)) continue;
      row = *like;
      break;
    }
  }
}

}  // namespace

std::vector<std::string> changed_tables(const Tables& before, const Tables& after) {
  std::vector<std::string> changed;
  const auto rows = [](const Tables& tables, const std::string& name) {
    const auto table = tables.find(name);
    return table == tables.end()
               ? std::multiset<TableRow>()
               : std::multiset<TableRow>(table->second.rows.begin(), table->second.rows.end());
  };
  for (const auto& [name, table] : after)
    if (name != store::kKeysTable && rows(before, name) != rows(after, name))
      changed.push_back(name);
  return changed;
}

Columns times_in(const Tables& tables, const std::vector<std::string>& names) {
  Columns columns;
  for (const std::string& name : names)
    for (const TableRow& row : tables.at(name).rows)
      for (const std::string& column : tables.at(name).times)
        if (row.at(column)) columns.insert(name + "." + column);
  return columns;
}

std::vector<std::string> differences(const Tables& before, const Tables& expected,
                                     const Tables& found, const Columns& without) {
  const TwoRoles roles = roles_of_new(before, expected, found, without);
  Tables there = found;
  take_over(expected, there, store::kKeysTable, "result", roles);
  take_over(expected, there, store::kOutboxTable, "payload", roles);
  std::set<std::string> names;
  for (const Tables* tables : {&expected, &found})
    for (const auto& [name, table] : *tables) names.insert(name);
  std::vector<std::string> sentences;
  for (const std::string& name : names) {
    const SortedRows wanted = rows_of(expected, name, roles.one, without);
    const SortedRows rows = rows_of(there, name, roles.other, without);
    const std::vector<json> extra = minus(rows, wanted);
    const std::vector<json> missing = minus(wanted, rows);
    if (extra.empty() && missing.empty()) continue;
    sentences.push_back(name + " has " + text_of(extra, "too many") +
                        (extra.empty() || missing.empty() ? "" : "; ") +
                        text_of(missing, "missing") + columns_text(name, extra, missing));
  }
  return sentences;
}

}  // namespace hapax::testing
