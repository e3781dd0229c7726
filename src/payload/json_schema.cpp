#include "payload/json_schema.hpp"

#define VALIJSON_USE_EXCEPTIONS 1  // else it ends the process

#include <nlohmann/json.hpp>
#include <regex>
#include <stdexcept>
#include <unordered_map>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "config/file_text.hpp"
#include "hapax/message.hpp"
#include "key/exact_json.hpp"
#include "payload/schema_keywords.hpp"

namespace hapax::payload {
namespace {

using nlohmann::json;
using Adapter = valijson::adapters::NlohmannJsonAdapter;

// In documents with more values or pairs of elements than this, the place of a violation is not
// told. valijson would collect an error for each of them.
constexpr std::size_t kMaxTold = 10'000;

// libstdc++ would match by recursion, one level for each byte, so a hostile string would overflow
// the stack. With this flag it uses no recursion.
constexpr auto kLinear = std::regex::ECMAScript | std::regex_constants::__polynomial;

// libstdc++ would also try a match from each byte on. So the pattern itself may begin at any byte,
// and one pass is enough. The schema's check refuses lookaheads, because each is a pass of its own.
std::regex linear(const std::string& pattern) {
  // Checked alone, because otherwise "a)(b" would be accepted.
  static_cast<void>(std::regex(pattern, kLinear));
  return std::regex("^[\\s\\S]*?(?:" + pattern + ")", kLinear | std::regex::nosubs);
}

}  // namespace

// valijson 1.0.3 takes a regex type of the caller. valijson 1.0 uses std::regex.
// JsonSchema::Compiled holds it, so it has external linkage.
struct Pattern {
  explicit Pattern(const std::string& text) : regex(linear(text)) {}
  static bool search(const std::string& text, const Pattern& pattern) {
    return std::regex_search(text, pattern.regex);
  }
  std::regex regex;
};

namespace {

template <class Pattern>
using Patterns = std::unordered_map<std::string, Pattern>;

template <template <class> class Visitor>
struct Engine {
  static std::regex made(const std::string& text) { return linear(text); }
  using Made = std::regex;
  using Of = Visitor<Adapter>;
};

template <template <class, class> class Visitor>
struct EngineOfOwn {
  static Pattern made(const std::string& text) { return Pattern(text); }
  using Made = Pattern;
  using Of = Visitor<Adapter, Pattern>;
};

template <template <class> class Visitor>
Engine<Visitor> engine();
template <template <class, class> class Visitor>
EngineOfOwn<Visitor> engine();
using Chosen = decltype(engine<valijson::ValidationVisitor>());

struct Size {
  std::size_t values = 0;
  std::size_t pairs = 0;  // pairs of elements of one array, times the values in an element
};

void measure(const json& value, Size& size) {
  ++size.values;
  const std::size_t before = size.values;
  if (value.is_structured())
    for (const json& element : value) measure(element, size);
  if (value.is_array()) size.pairs += value.size() * (size.values - before) / 2;
}

// valijson names a place by steps: <root>, ["name"], [0].
std::string pointer_of(const std::vector<std::string>& steps) {
  std::string pointer;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const std::string& step = steps[i];
    const std::size_t quote = step.starts_with("[\"") ? 2 : 1;
    pointer += '/';
    for (const char c : step.substr(quote, step.size() - 2 * quote))
      pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return pointer;
}

}  // namespace

struct JsonSchema::Compiled {
  json document;  // the schema refers to it
  valijson::Schema schema;
  bool compares_elements = false;
  // valijson looks up each pattern here, and would add missing ones. None is missing, so lanes can
  // share it.
  mutable Patterns<Chosen::Made> patterns;

  bool conforms(const json& value, valijson::ValidationResults* results) const {
    Chosen::Of visitor(Adapter(value), {"<root>"}, true, results, patterns);
    return visitor.validateSchema(schema);
  }
};

JsonSchema::JsonSchema(std::string_view text) : compiled_(std::make_unique<Compiled>()) {
  CheckedSchema checked;
  Message::Parts parts;
  parts.payload = text;
  try {
    checked = check_keywords(Message(parts).json());
  } catch (const BadPayload& error) {
    std::string why = error.what();  // it calls the text a payload; here it is a schema
    if (why.starts_with("the payload")) why.replace(0, 11, "it");
    throw std::runtime_error(why);
  }
  // Of two members of one name, only the last would be checked.
  const auto exact = key::parse_exact(text);
  if (const auto* const error = std::get_if<key::NotJson>(&exact))
    throw std::runtime_error("it is not JSON that can be checked: " + error->why);
  compiled_->document = std::move(checked.schema);
  compiled_->compares_elements = checked.compares_elements;
  for (const std::string& pattern : checked.patterns) try {
      compiled_->patterns.try_emplace(pattern, Chosen::made(pattern));
    } catch (const std::regex_error& error) {
      throw std::runtime_error("the pattern \"" + pattern + "\" is no regular expression that " +
                               "hapax can match without backtracking (" + error.what() + ")");
    }
  try {
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    parser.populateSchema(Adapter(compiled_->document), compiled_->schema);
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string("it is no JSON Schema of draft 7: ") + error.what());
  }
}

JsonSchema::~JsonSchema() = default;

std::optional<std::string> JsonSchema::violation(json document) const {
  make_comparable(document);
  Size size;
  measure(document, size);
  if (compiled_->compares_elements && size.pairs > kMaxPairs)
    return "its arrays are too long to compare their elements (\"uniqueItems\"): more than " +
           std::to_string(kMaxPairs) + " pairs";
  if (compiled_->conforms(document, nullptr)) return std::nullopt;
  const bool compares_many = compiled_->compares_elements && size.pairs > kMaxTold;
  if (size.values > kMaxTold || compares_many)
    return "it does not conform, and is too large to tell the place";
  valijson::ValidationResults results;
  compiled_->conforms(document, &results);
  valijson::ValidationResults::Error error;
  if (!results.popError(error)) return "at \"\": no value conforms";
  return "at \"" + pointer_of(error.context) + "\": " + error.description;
}

std::shared_ptr<const JsonSchema> read_json_schema(const std::string& path) {
  const auto file = config::read_file(path);
  if (const auto* const error = std::get_if<config::NotRead>(&file))
    throw std::runtime_error("cannot read the JSON Schema " + path + ": " + error->why +
                             "; fix the path, which begins in the configuration's folder");
  try {
    return std::make_shared<const JsonSchema>(std::get<config::FileText>(file).text);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error("the JSON Schema " + path + " cannot be used: " + error.what());
  }
}

}  // namespace hapax::payload
