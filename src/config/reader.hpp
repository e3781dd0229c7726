// Walks the parsed document and collects what is wrong with it.
//
// An Object is read member by member, each with a rule (rules.hpp): what it may be, in values and
// in words. The names that were asked for are the known ones; finish() reports all others. So the
// code that reads a section is also the list of what may stand in it.
//
// Thread safety: none; one load, one thread.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/expand.hpp"
#include "config/problem.hpp"

namespace hapax::config {

// One value of the document and its place. Lifetime: points into the document.
struct Value {
  const nlohmann::json* json;
  std::string path;
};

// The path of a member; `path` may be "" (the document).
std::string member_path(const std::string& path, const std::string& name);

// What all parts of one load share.
class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  void problem(std::string path, std::string message);

  // "found …; allowed: …". Shows what stands in the file, so never what a variable or file holds.
  void refuse(const Value& value, const std::string& allowed);

  // The expanded string. Nothing, and a problem, if the value is no string, cannot be expanded, or
  // holds a NUL byte, at which C libraries would stop reading.
  std::optional<std::string> text(const Value& value, const std::string& allowed);

  // The same for each string in any value; other values as they are.
  nlohmann::json expanded(const Value& value);

  // The file that the string names with @; "" if it names none.
  std::string file_named_by(const Value& value) const;

  // The elements; a problem if it is no array, or empty.
  std::vector<Value> elements(const Value& value, const std::string& allowed);

  // Whether a secret stands in the file itself; set by the code that reads one.
  bool literal_secret = false;

  std::vector<Problem> problems;
  std::vector<std::string> warnings;

 private:
  const Environment& environment_;
};

class Object {
 public:
  // What is no object is a problem, and read as if it were empty without further problems.
  Object(Reader& reader, Value value);

  Reader& reader() { return reader_; }
  bool is_object() const { return is_object_; }
  const std::string& path() const { return value_.path; }
  const nlohmann::json& members() const { return *value_.json; }

  // Makes `name` a known one.
  std::optional<Value> find(const std::string& name);

  // `rule(reader, value)` gives an optional value, or reports a problem. What is absent or wrong
  // leaves `into` as it is.
  template <class T, class Rule>
  bool read(const std::string& name, T& into, const Rule& rule) {
    const auto value = find(name);
    if (!value) return false;
    if (auto result = rule(reader_, *value)) into = static_cast<T>(*std::move(result));
    return true;
  }

  // As read(), but absence is a problem. `what`: a sentence's end, after "is missing: ".
  template <class T, class Rule>
  void require(const std::string& name, T& into, const Rule& rule, const std::string& what) {
    if (!read(name, into, rule)) missing(name, what);
  }

  // An absent section is read as an empty one, so that what it must hold is reported.
  void section(const std::string& name, const std::function<void(Object&)>& read_members);

  // Reports the members that no code asked for, except those that `is_other` accepts.
  void finish(const std::function<bool(const std::string&)>& is_other = {});

 private:
  void missing(const std::string& name, const std::string& what);

  Reader& reader_;
  Value value_;
  bool is_object_ = true;
  std::vector<std::string> known_;
};

}  // namespace hapax::config
