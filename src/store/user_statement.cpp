#include "store/user_statement.hpp"

#include <algorithm>
#include <regex>

namespace hapax::store {
namespace {

constexpr std::size_t kLongestName = 63;      // bytes; PostgreSQL cuts off the rest
constexpr std::size_t kLongestJoined = 4096;  // bytes; std::regex needs stack for each

// The words and signs of an SQL text, without its comments and the contents of its strings.
class Tokens {
 public:
  struct Token {
    std::string text = {};  // of a word as PostgreSQL keeps it; of a sign, itself; at the end: ""
    bool is_word = false;
    bool is_quoted = false;
  };

  explicit Tokens(std::string_view text) : text_(text) {}

  Token next() {
    skip_space();
    if (at_ >= text_.size()) return {};
    const char c = text_[at_];
    if (c == '\'') return string('\'', false), Token{"'"};
    if (c == '"') return {string('"', false), true, true};
    if (begins_word(c)) return word();
    if (c == '$' && skip_dollar_quoted()) return {"'"};
    ++at_;
    return {std::string(1, c)};
  }

 private:
  static bool begins_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
  }
  static bool is_in_word(char c) { return begins_word(c) || (c >= '0' && c <= '9') || c == '$'; }
  bool is_at(std::string_view what) const { return text_.substr(at_, what.size()) == what; }

  void skip_space() {
    while (at_ < text_.size()) {
      if (std::string_view(" \t\r\n\f\v").find(text_[at_]) != std::string_view::npos) {
        ++at_;
      } else if (is_at("--")) {
        at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
      } else if (is_at("/*")) {
        skip_comment();
      } else {
        return;
      }
    }
  }

  void skip_comment() {  // they nest
    int depth = 0;
    while (at_ < text_.size()) {
      const bool opens = is_at("/*"), closes = is_at("*/");
      at_ += opens || closes ? 2 : 1;
      depth += opens ? 1 : closes ? -1 : 0;
      if (depth == 0) return;
    }
  }

  // Its contents, without the quotes.
  std::string string(char quote, bool has_escapes) {
    std::string contents;
    for (++at_; at_ < text_.size(); ++at_) {
      if (has_escapes && text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == quote) {
        if (text_.substr(at_ + 1, 1) != std::string_view(&quote, 1)) break;
        ++at_;
      }
      if (at_ < text_.size()) contents += text_[at_];
    }
    ++at_;
    return contents;
  }

  Token word() {
    Token token{{}, true, false};
    for (; at_ < text_.size() && is_in_word(text_[at_]); ++at_) {
      const char c = text_[at_];
      token.text += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    if (!is_at("'") || token.text != "e") return token;
    while (is_at("'")) {  // on a new line it goes on, with escapes
      string('\'', true);
      skip_space();
    }
    return {"'"};
  }

  // $tag$ … $tag$; not a parameter.
  bool skip_dollar_quoted() {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '$' && is_in_word(text_[end])) ++end;
    if (end >= text_.size() || text_[end] != '$') return false;
    const std::string_view tag = text_.substr(at_, end + 1 - at_);
    if (tag.size() > 2 && !begins_word(tag[1])) return false;
    const std::size_t closed = text_.find(tag, end + 1);
    at_ = closed == std::string_view::npos ? text_.size() : closed + tag.size();
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

template <std::size_t kSize>
bool is_one_of(const std::string& word, const std::string_view (&words)[kSize]) {
  return std::ranges::find(words, word) != std::end(words);
}

constexpr std::string_view kPlain[] = {"select", "insert", "update", "delete",
                                       "with",   "values", "merge",  "table"};
constexpr std::string_view kOfPreparedStatements[] = {"prepare", "deallocate", "discard"};
// Leave something, and the transaction as it is.
constexpr std::string_view kHarmless[] = {"set",   "show",     "lock",    "declare", "fetch",
                                          "close", "truncate", "explain", "notify",  "create"};

}  // namespace

UserText read_user_text(std::string_view text) {
  Tokens tokens(text);
  Tokens::Token token = tokens.next();
  while (token.text == "(") token = tokens.next();
  UserText read;
  const std::string first = token.text;
  if (is_one_of(first, kOfPreparedStatements)) {
    read.leaves = Leaves::prepared_statements;
  } else if (!is_one_of(first, kPlain) || token.is_quoted) {
    read.leaves = Leaves::settings;
  }
  read.controls_transaction = read.leaves != Leaves::nothing && !is_one_of(first, kHarmless);
  if (read.leaves != Leaves::nothing) return read;

  // Whether a SELECT came before, at each depth of parentheses: an INTO behind it makes a table,
  // even behind a column that is called `insert`.
  std::vector<bool> selects = {false};
  Tokens::Token before;
  for (; !token.text.empty() || token.is_word; before = std::move(token), token = tokens.next()) {
    if (token.text == "(" && before.is_word) read.calls.push_back(before.text);
    // `row.function`
    if (token.is_word && before.text == "." && !before.is_word) read.calls.push_back(token.text);
    if (token.text == "(" && !token.is_word) selects.push_back(false);
    if (token.text == ")" && !token.is_word && selects.size() > 1) selects.pop_back();
    if (!token.is_word) continue;
    // Its rule sets settings.
    if (token.text == "pg_settings" || token.text.size() > kLongestName)
      read.leaves = Leaves::settings;
    if (token.is_quoted) {  // U&"…" is a name written with escapes
      if (before.text == "&") read.leaves = Leaves::settings;
    } else if (token.text == "select") {
      selects.back() = true;
    } else if (token.text == "into" && selects.back()) {
      read.leaves = Leaves::settings;
    }
  }
  std::ranges::sort(read.calls);
  read.calls.erase(std::unique(read.calls.begin(), read.calls.end()), read.calls.end());
  return read;
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
