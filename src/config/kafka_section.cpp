// The section "kafka": a few settings of hapax's own among librdkafka's properties.
#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "config/file_text.hpp"
#include "config/kafka_rules.hpp"
#include "config/redact.hpp"
#include "config/rules.hpp"
#include "config/sections.hpp"

namespace hapax::config {
namespace {

// The text of a setting for librdkafka, for any type in the file.
struct Property {
  std::optional<std::string> operator()(Reader& reader, const Value& value) const {
    if (value.json->is_number() || value.json->is_boolean()) return value.json->dump();
    return reader.text(value, "a string, a number, true or false");
  }
};

// librdkafka's names have a dot, but for these.
bool is_property(const std::string& name) {
  return name.find('.') != std::string::npos || name == "debug" || name == "log_level";
}

// Function pointers of librdkafka, which a program sets and a file cannot.
bool is_callback(const std::string& name) {
  constexpr std::array<std::string_view, 4> kNames = {"enabled_events", "interceptors", "opaque",
                                                      "default_topic_conf"};
  return name.ends_with("_cb") || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

void note_literal_secret(Reader& reader, const std::string& name, const Value& value) {
  if (is_secret(name) && value.json->is_string() &&
      !literal_part(value.json->get_ref<const std::string&>()).empty())
    reader.literal_secret = true;
}

void read_property(Reader& reader, const std::string& name, const Value& value, Kafka& kafka) {
  note_literal_secret(reader, name, value);
  if (is_secret(name) && !value.json->is_string())
    return reader.problem(value.path, "must be a string (its value is not shown)");
  const auto text = Property()(reader, value);
  if (!text) return;
  if (const auto why = kafka_refusal(name, *text)) {
    const std::string found = value.json->dump(-1, ' ', true);
    reader.problem(value.path, "found " + redacted(name, found) + "; " + *why);
    return;
  }
  kafka.properties[name] = *text;
  if (const std::string file = reader.file_named_by(value);
      !file.empty() && (name == "sasl.username" || name == "sasl.password"))
    kafka.files[name] = file;
  if ((name == "ssl.key.location" || name == "ssl.keystore.location") && open_to_others(*text))
    reader.warnings.push_back(open_to_others_warning("the private key", *text));
}

}  // namespace

void read_kafka(Object& section, Kafka& kafka) {
  const std::vector<std::pair<std::string, std::string>> required = {
      {"bootstrap.servers", "Kafka's addresses, such as \"kafka-1:9092,kafka-2:9092\""},
      {"group.id", "the name of the consumer group"}};
  for (const auto& [name, what] : required)
    section.require(name, kafka.properties[name], Text{what}, what);

  section.read("initial", kafka.initial,
               Choice<Initial>{{{"earliest", Initial::earliest}, {"latest", Initial::latest}}});
  section.read(
      "out_of_range", kafka.out_of_range,
      Choice<OutOfRange>{{{"halt", OutOfRange::halt}, {"earliest", OutOfRange::earliest}}});
  section.read("wait_for_topics", kafka.wait_for_topics, Flag{});

  for (const auto& [name, member] : section.members().items()) {
    if (kafka.properties.contains(name)) continue;
    const Value value{&member, member_path(section.path(), name)};
    if (is_property(name)) read_property(section.reader(), name, value, kafka);
    if (is_callback(name))
      section.reader().problem(value.path, "hapax sets this itself; remove it");
  }
  section.finish([](const std::string& name) { return is_property(name) || is_callback(name); });
}

}  // namespace hapax::config
