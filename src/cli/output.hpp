// What commands print: aligned tables for people, JSON for programs. All that came from a message
// or a server is escaped here.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hapax::app {

using Json = nlohmann::ordered_json;

// A line to stdout, escaped.
void print_line(const std::string& line);

void print_json(const Json& value);

// Columns as wide as their widest cell; plain spaces, so that awk and cut can read it.
class Table {
 public:
  explicit Table(std::vector<std::string> headings);
  // Precondition: as many cells as headings.
  void add(std::vector<std::string> cells);
  // Leaves the column out if all of its cells are "-".
  void leave_out_if_empty(std::size_t column);
  bool empty() const { return rows_.size() == 1; }
  std::string text() const;
  void print() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // escaped; the headings first
};

// A JSON value as a cell: null as "-", strings as they are.
std::string cell(const Json& value);
// The same, at most `width` code points, with "…" if it was cut.
std::string cut(const std::string& text, std::size_t width);
// As one word of a POSIX shell, also if a producer wrote it.
std::string shell_word(const std::string& text);
// The same of a path, which stays as it is if no shell would change it.
std::string path_word(const std::string& path);
// "2026-11-21 09:55:33" of PostgreSQL's ISO 8601, with its zone if it is not UTC.
std::string time_cell(const Json& value);

// topic/partition/offset of a row with these columns.
std::string coordinates_cell(const Json& row);

// The scopes and tenants of rows with these columns: `scope "s" tenant "t", …`.
std::string key_places(const Json& rows);
// The tenant of a row with this column; "-" if there is none.
std::string tenant_cell(const Json& row);

// The bytes that `hex` spells. Nothing for JSON null.
std::optional<std::string> bytes_of_hex(const Json& hex);
// A message's payload, for `--payload`: byte for byte, or escaped on a terminal.
// Throws: Stop(kFailed) if it is null.
void print_payload(const std::optional<std::string>& payload);
// {"text": …} if it is UTF-8, else {"base64": …}; null stays null.
Json bytes_json(const std::optional<std::string>& bytes);

}  // namespace hapax::app
