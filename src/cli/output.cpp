#include "cli/output.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>

#include "cli/command.hpp"
#include "key/base64.hpp"
#include "observe/escape.hpp"

namespace hapax::app {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return !continues(c); }));
}

}  // namespace

void print_line(const std::string& line) {
  std::printf("%s\n", observe::escape_for_terminal(line).c_str());
}

void print_payload(const std::optional<std::string>& payload) {
  if (!payload) throw Stop(kFailed, "the payload is null (a tombstone): there are no bytes");
  if (isatty(STDOUT_FILENO) != 0)
    print_line(*payload);
  else
    std::fwrite(payload->data(), 1, payload->size(), stdout);
}

// On a terminal nothing beyond ASCII: a message may hold what steers it. A path may not be UTF-8.
void print_json(const Json& value) {
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  std::printf("%s\n", value.dump(2, ' ', terminal, Json::error_handler_t::replace).c_str());
}

Table::Table(std::vector<std::string> headings) { add(std::move(headings)); }

void Table::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = observe::escape_for_terminal(cell);
  rows_.push_back(std::move(cells));
}

void Table::leave_out_if_empty(std::size_t column) {
  const auto is_empty = [&](const auto& row) { return row[column] == "-"; };
  if (!std::all_of(rows_.begin() + 1, rows_.end(), is_empty)) return;
  for (auto& row : rows_) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
}

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_[0].size());
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  std::string text;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] - width_of(row[i]) + 2, ' ');
    }
    text += '\n';
  }
  return text;
}

void Table::print() const { std::fputs(text().c_str(), stdout); }

std::string cell(const Json& value) {
  if (value.is_null()) return "-";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string shell_word(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

std::string path_word(const std::string& path) {
  const bool plain = std::ranges::all_of(path, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("/._-+,:@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  return plain && !path.empty() ? path : shell_word(path);
}

std::string cut(const std::string& text, std::size_t width) {
  const std::string line = text.substr(0, text.find('\n'));
  if (width_of(line) <= width) return line.size() == text.size() ? line : line + "…";
  std::size_t end = 0;
  for (std::size_t points = 0; end < line.size(); ++end)
    if (!continues(line[end]) && ++points == width) break;
  return line.substr(0, end) + "…";
}

std::string time_cell(const Json& value) {
  if (!value.is_string()) return "-";
  std::string text = value.get<std::string>();  // 2026-11-21T09:55:33.123456+00:00
  if (text.size() < 19) return text;
  text[10] = ' ';
  const std::size_t zone = text.find_first_of("+-Z", 19);
  const std::string suffix = zone == std::string::npos ? "" : text.substr(zone);
  return text.substr(0, 19) + (suffix == "+00:00" ? "" : suffix);
}

std::string coordinates_cell(const Json& row) {
  return cell(row.at("topic")) + "/" + cell(row.at("partition")) + "/" +
         cell(row.at("kafka_offset"));
}

std::string tenant_cell(const Json& row) {
  const Json& tenant = row.at("tenant");
  return tenant == "" ? "-" : cell(tenant);
}

std::string key_places(const Json& rows) {
  std::string places;
  for (const Json& row : rows) {
    places += (places.empty() ? "" : ", ") + ("scope \"" + cell(row.at("scope")) + "\"");
    if (const std::string tenant = tenant_cell(row); tenant != "-")
      places += " tenant \"" + tenant + "\"";
  }
  return places;
}

std::optional<std::string> bytes_of_hex(const Json& hex) {
  if (hex.is_null()) return std::nullopt;
  const auto& text = hex.get_ref<const std::string&>();
  const auto digit = [&](std::size_t i) {
    const char c = text[i];
    return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
  };
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(digit(i) << 4U | digit(i + 1));
  return bytes;
}

Json bytes_json(const std::optional<std::string>& bytes) {
  if (!bytes) return nullptr;
  if (observe::to_valid_utf8(*bytes) == *bytes) return Json{{"text", *bytes}};
  return Json{{"base64", key::base64(*bytes)}};
}

}  // namespace hapax::app
