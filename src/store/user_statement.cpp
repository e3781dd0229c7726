#include "store/user_statement.hpp"

#include <regex>

namespace hapax::store {
namespace {

constexpr std::size_t kLongestJoined = 4096;  // bytes; std::regex needs stack for each

}  // namespace

Leaves leaves(std::string_view text) {
  std::string lower;
  for (const char c : text) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  const std::size_t begin = lower.find_first_not_of(" \t\r\n(");
  if (begin == std::string::npos) return Leaves::nothing;
  const std::string word =
      lower.substr(begin, lower.find_first_not_of("abcdefghijklmnopqrstuvwxyz", begin) - begin);
  for (const char* spoiling : {"prepare", "deallocate", "discard"})
    if (word == spoiling) return Leaves::prepared_statements;
  bool plain = false;
  for (const char* query : {"select", "insert", "update", "delete", "with", "values", "merge"})
    plain = plain || word == query;
  for (const char* suspect : {"set_config", "advisory", "into temp"})
    plain = plain && lower.find(suspect) == std::string::npos;
  return plain ? Leaves::nothing : Leaves::settings;
}

std::optional<std::string> plain_insert(std::string_view text) {
  if (text.size() > kLongestJoined) return std::nullopt;
  static const std::regex kPlain(
      R"re(\s*(insert\s+into\s+(?:[\w.]|"(?:[^"]|"")*")+\s*\((?:[\w\s,]|"(?:[^"]|"")*")+\)))re"
      R"re(\s*values\s*\(([^()]*)\)\s*;?\s*)re",
      std::regex::icase | std::regex::optimize);
  std::match_results<std::string_view::const_iterator> match;
  if (!std::regex_match(text.begin(), text.end(), match, kPlain)) return std::nullopt;
  std::string values;
  for (const char c : match[2].str())
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') values += c;
  std::string expected;  // $1,$2,… in order: an array for each
  for (int i = 1; expected.size() < values.size(); ++i)
    expected += (i > 1 ? ",$" : "$") + std::to_string(i);
  if (values != expected) return std::nullopt;
  return match[1].str();
}

}  // namespace hapax::store
