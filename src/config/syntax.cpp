#include "config/syntax.hpp"

#include <set>
#include <string>

namespace hapax::config {
namespace {

using nlohmann::json;

// Follows the parser, to know its place and the names that it has seen there.
class Names {
 public:
  explicit Names(std::vector<Problem>& problems) : problems_(problems) {}

  void see(json::parse_event_t event, const json& parsed) {
    using Event = json::parse_event_t;
    if (event == Event::object_end || event == Event::array_end) {
      open_.pop_back();
    } else if (event == Event::key) {
      Open& object = open_.back();
      object.at = (path(open_.size() - 1).empty() ? "" : ".") + parsed.get<std::string>();
      if (!object.names.insert(object.at).second)
        problems_.push_back({path(open_.size()), "comes twice in one object; remove one"});
    } else {
      if (!open_.empty() && open_.back().array)
        open_.back().at = "[" + std::to_string(open_.back().count++) + "]";
      if (event != Event::value) open_.push_back({event == Event::array_start, 0, "", {}});
    }
  }

 private:
  struct Open {
    bool array;
    std::size_t count;
    std::string at;  // the part of the path that its current member adds
    std::set<std::string> names;
  };

  std::string path(std::size_t depth) const {
    std::string result;
    for (std::size_t i = 0; i < depth; ++i) result += open_[i].at;
    return result;
  }

  std::vector<Problem>& problems_;
  std::vector<Open> open_;
};

// The parser tells the place behind the mistake, which is often a comma.
std::string with_hint(std::string what) {
  const auto has = [&](const char* const part) { return what.find(part) != std::string::npos; };
  if (has("unexpected end of input")) return what;
  if (has("; expected '}'") || has("; expected ']'"))
    what += ". Is a comma missing before it?";
  else if (has("unexpected '}'; expected string") || has("unexpected ']'; expected '['"))
    what += ". Is there a comma too many before it?";
  return what;
}

// Takes nlohmann's tag off, and what it last read: that may be half of a password.
std::string sentence(std::string what) {
  what.erase(0, what.find("] ") == std::string::npos ? 0 : what.find("] ") + 2);
  if (const std::string place = "parse error at "; what.starts_with(place))
    what.erase(0, place.size());
  const auto read = what.find("; last read: '");
  if (read == std::string::npos) return what;
  const auto expected = what.rfind("'; expected ");
  return what.substr(0, read) + (expected == std::string::npos ? "" : what.substr(expected + 1));
}

}  // namespace

std::optional<json> parse(std::string_view text, std::vector<Problem>& problems) {
  Names names(problems);
  try {
    return json::parse(
        text,
        [&](int, json::parse_event_t event, json& parsed) {
          names.see(event, parsed);
          return true;
        },
        true, true);
  } catch (const json::exception& error) {
    problems.push_back({"", with_hint(sentence(error.what()))});
    return std::nullopt;
  }
}

}  // namespace hapax::config
