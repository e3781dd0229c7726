#include "payload/registry.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "observe/log.hpp"

namespace hapax::payload {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

// References of one schema, bounded because a registry could give them without end.
constexpr std::size_t kMaxReferences = 100;

// The log names at most one unknown schema in this time, and at most one with trouble.
constexpr std::chrono::minutes kTellAgain{1};

// The time for a schema with all that it refers to. A lane waits meanwhile.
constexpr std::chrono::seconds kMaxTime{5};

// Not every registry has this path. Then its web framework answers 404 without an error_code.
constexpr std::string_view kGuids = "/schemas/guids/";

std::string string_of(const json& document, const char* member, const char* otherwise) {
  const auto found = document.find(member);
  return found != document.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

// The path of what a schema refers to; empty if it names nothing. A version that was deleted is
// still what messages were written by.
std::string path_of(const json& reference) {
  if (!reference.is_object()) return {};
  const std::string subject = string_of(reference, "subject", "");
  const auto version = reference.find("version");
  if (subject.empty() || version == reference.end() || !version->is_number_integer()) return {};
  return "/subjects/" + url_escape(subject) + "/versions/" + version->dump() + "?deleted=true";
}

// A rule by which Confluent's clients change or check what they read, as decryption does. Nothing
// if there is none.
std::optional<std::string> rule_of_reading(const json& document) {
  const auto rules = document.find("ruleSet");
  if (rules == document.end() || !rules->is_object()) return std::nullopt;
  for (const char* const phase : {"domainRules", "encodingRules"}) {
    const auto found = rules->find(phase);
    if (found == rules->end() || !found->is_array()) continue;
    for (const json& rule : *found) {
      if (!rule.is_object() || rule.value("disabled", json()) == true) continue;
      const bool is_check = string_of(rule, "kind", "TRANSFORM") == "CONDITION";
      if (string_of(rule, "mode", is_check ? "WRITE" : "WRITEREAD") != "WRITE")
        return string_of(rule, "name", "") + " (" + string_of(rule, "type", "") + ")";
    }
  }
  return std::nullopt;
}

}  // namespace

Registry::Found Registry::find(const std::string& path) {
  const sync::Lock lock(mutex_);
  const auto now = now_();
  if (now < ask_not_before_)
    return NotNow{why_away_, std::chrono::ceil<milliseconds>(ask_not_before_ - now)};
  if (const auto trouble = troubles_.find(path);
      trouble != troubles_.end() && now < trouble->second.not_before)
    return NotNow{trouble->second.why,
                  std::chrono::ceil<milliseconds>(trouble->second.not_before - now)};
  if (const auto asked = unknown_.find(path);
      asked != unknown_.end() && now < asked->second.last + kAskAgain) {
    const bool may_come = now < asked->second.first + unknown_timeout_;
    if (!may_come) return unknown(path);
    const auto next =
        std::min(asked->second.last + kAskAgain, asked->second.first + unknown_timeout_);
    return NotNow{"the registry does not know " + path + " yet",
                  std::chrono::ceil<milliseconds>(next - now)};
  }
  return ask(path);
}

Registry::Found Registry::ask(const std::string& path) {
  auto answer = schema(path);
  if (const auto* const away = std::get_if<Away>(&answer)) {
    if (!answers()) return went_away(away->why);
    came_back();
    if (away->has_no_such_path) {
      troubles_.erase(path);
      return unknown(path);
    }
    return has_trouble(path, away->why);
  }
  came_back();
  troubles_.erase(path);
  if (std::holds_alternative<Missing>(answer)) return unknown(path);
  unknown_.erase(path);
  return std::get<SchemaText>(std::move(answer));
}

bool Registry::answers() const { return !std::holds_alternative<Away>(answer(kProbe)); }

// The registry answers, but not to this question. So only messages of this schema wait.
Registry::NotNow Registry::has_trouble(const std::string& path, const std::string& why) {
  const auto now = now_();
  if (troubles_.size() >= kMaxUnknown && !troubles_.contains(path))
    troubles_.erase(troubles_.begin());  // the only effect is that it is asked again too early
  Trouble& trouble = troubles_[path];
  if (now > trouble.not_before + kMaxTroubleWait) trouble.wait = milliseconds(0);
  trouble.why = "the schema registry does not give out " + path + ": " + why;
  trouble.wait = std::clamp(trouble.wait * 2, kMaxWait / 2, kMaxTroubleWait);
  trouble.not_before = now + trouble.wait;
  if (now >= tell_trouble_not_before_) {
    tell_trouble_not_before_ = now + kTellAgain;
    observe::log::warning(
        "schema_not_given", {{"registry", name_}, {"schema", path}, {"error", why}},
        "the schema registry answers, but does not give out a schema; its messages wait, "
        "no attempt is counted, they go on by themselves");
  }
  return {trouble.why, trouble.wait};
}

Registry::NotNow Registry::went_away(const std::string& why) {
  up_ = false;
  if (wait_.count() == 0)
    observe::log::warning("registry_down", {{"registry", name_}, {"error", why}},
                          "the schema registry is away; messages whose schema is not known wait, "
                          "no attempt is counted, they go on by themselves");
  wait_ = std::clamp(wait_ * 2, kFirstWait, kMaxWait);
  ask_not_before_ = now_() + wait_;
  why_away_ = "the schema registry is away: " + why;
  return {why_away_, wait_};
}

void Registry::came_back() {
  if (wait_.count() > 0)
    observe::log::info("registry_up", {{"registry", name_}}, "the schema registry is back");
  wait_ = milliseconds(0);
  up_ = true;
}

Registry::Found Registry::unknown(const std::string& path) {
  const auto now = now_();
  const Unknown refused{"the registry does not know " + path};
  auto asked = unknown_.find(path);
  if (asked == unknown_.end()) {
    if (unknown_.size() >= kMaxUnknown) {
      const auto oldest = std::ranges::min_element(
          unknown_, {}, [](const auto& entry) { return entry.second.first; });
      // It may become known meanwhile: it must not pay for the others.
      if (now < oldest->second.first + unknown_timeout_)
        return NotNow{refused.why + " yet, nor many others", kAskAgain};
      unknown_.erase(oldest);
    }
    asked = unknown_.try_emplace(path, Asked{now, now}).first;
    if (now >= tell_not_before_) {  // a message may hold any id
      tell_not_before_ = now + kTellAgain;
      observe::log::warning(
          "schema_unknown",
          {{"registry", name_}, {"schema", path}, {"waits_ms", unknown_timeout_.count()}},
          "the schema registry does not know a schema; its messages wait, then "
          "become dead letters");
    }
  } else if (now >= asked->second.last + kAskAgain) {
    // If the last question is long ago, the wait begins again. Otherwise one message with an id of
    // the future would use up the wait of that id.
    if (now > asked->second.last + 2 * (unknown_timeout_ + kAskAgain)) asked->second.first = now;
    asked->second.last = now;
  }
  const auto end = asked->second.first + unknown_timeout_;
  if (now >= end) return refused;
  const auto next = std::min(asked->second.last + kAskAgain, end);
  return NotNow{refused.why + " yet", std::chrono::ceil<milliseconds>(next - now)};
}

// Returns any JSON answer, also a refusal.
Registry::Document Registry::answer(const std::string& path) const {
  HttpAnswer answer;
  try {
    answer = get_(path);
  } catch (const std::runtime_error& error) {
    return Away{error.what()};
  }
  if (answer.status == 401 || answer.status == 403)
    return Away{"it refuses payload.registry's user and password (HTTP " +
                std::to_string(answer.status) + ")"};
  // The answer may be of a busy registry, or of another server, such as a proxy's 404. If a
  // registry does not know a path, it answers with JSON: 404, or in old versions another 4xx to a
  // GUID.
  const auto is_a_refusal = [&] {
    const json refusal = json::parse(answer.body, nullptr, false);
    return refusal.is_object() && refusal.contains("error_code");
  };
  if (answer.status == 408 || answer.status == 429 || answer.status < 200 ||
      (answer.status >= 300 && answer.status < 400) || answer.status >= 500 ||
      (answer.status != 200 && !is_a_refusal()))
    return Away{"it answers HTTP " + std::to_string(answer.status),
                answer.status == 404 && path.starts_with(kGuids)};
  if (answer.status != 200) return Missing{};
  json document = json::parse(answer.body, nullptr, false);
  if (document.is_discarded()) return Away{"what it answers is no JSON"};
  return document;
}

Registry::Document Registry::document(const std::string& path) const {
  auto read = answer(path);
  const json* const document = std::get_if<json>(&read);
  if (document != nullptr && (!document->is_object() || string_of(*document, "schema", "").empty()))
    return Away{"what it answers is no schema"};
  return read;
}

// Reads a schema with all that it refers to, depth first. What is referred to twice is read once.
// Of two versions under one name, Avro takes the first, as Confluent's clients do: a producer may
// have written by it.
class Registry::Walk {
 public:
  struct Stopped {
    std::variant<SchemaText, Missing, Away> why;
  };

  explicit Walk(const Registry& registry) : registry_(registry), began_(registry.now_()) {}

  // Throws: Stopped; NotDecodable.
  SchemaText read(const std::string& path) {
    const json document = document_of(path);
    schema_.type = string_of(document, "schemaType", "AVRO");
    add_references_of(document, true);
    if (const auto rule = rule_of_reading(document))
      throw NotDecodable("the schema has the rule " + *rule +
                         ", which acts on what is read; hapax carries out no rules");
    schema_.text = string_of(document, "schema", "");
    return std::move(schema_);
  }

 private:
  json document_of(const std::string& path) const {
    if (registry_.now_() - began_ > kMaxTime)
      throw Stopped{Away{"it takes more than " + std::to_string(kMaxTime.count()) +
                         " s for a schema and those it refers to"}};
    auto read = registry_.document(path);
    if (std::holds_alternative<Missing>(read)) throw Stopped{Missing{}};
    if (auto* const away = std::get_if<Away>(&read)) throw Stopped{std::move(*away)};
    return std::get<json>(std::move(read));
  }

  // `is_root`: of the schema itself, so that its references are direct ones. kMaxReferences bounds
  // the depth.
  void add_references_of(const json& document, bool is_root) {
    const auto references = document.find("references");
    if (references == document.end() || !references->is_array()) return;
    for (const json& reference : *references) {
      const std::string path = path_of(reference);
      if (path.empty()) throw NotDecodable("the schema has a reference that names no subject");
      const std::string name = string_of(reference, "name", "");
      const auto [known, is_new] =
          places_.try_emplace(schema_.type == "AVRO" && !name.empty() ? name : path, 0);
      if (is_new) {
        if (places_.size() > kMaxReferences)
          throw NotDecodable("the schema refers to more than " + std::to_string(kMaxReferences) +
                             " others");
        const json referred = document_of(path);
        add_references_of(referred, false);
        known->second = schema_.references.size();
        schema_.references.push_back({name, string_of(referred, "schema", ""), is_root});
      } else if (is_root) {
        schema_.references[known->second].is_direct = true;
      }
    }
  }

  const Registry& registry_;
  const Clock::time_point began_;
  SchemaText schema_;
  std::map<std::string, std::size_t> places_;  // in schema_.references, once that is known
};

std::variant<SchemaText, Registry::Missing, Registry::Away> Registry::schema(
    const std::string& path) const {
  try {
    return Walk(*this).read(path);
  } catch (Walk::Stopped& stopped) {
    return std::move(stopped.why);
  }
}

}  // namespace hapax::payload
