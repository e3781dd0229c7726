#include "config/kafka_rules.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <vector>

namespace hapax::config {
namespace {

struct Rule {
  std::string_view property;
  std::vector<std::string_view> allowed;  // the first is the one to write; as librdkafka reads it
  std::string_view why;
};

const std::vector<std::string_view> kFalse = {"false", "f", "0"};
const std::vector<std::string_view> kTrue = {"true", "t", "1"};
constexpr std::string_view kOffsets =
    "hapax moves an offset itself, after the effects are in PostgreSQL; Kafka's own commits would "
    "lose messages";

const std::vector<Rule> kRules = {
    {"enable.auto.commit", kFalse, kOffsets},
    {"auto.commit.enable", kFalse, kOffsets},
    {"enable.auto.offset.store", kFalse, kOffsets},
    {"offset.store.method", {"broker"}, kOffsets},
    {"auto.offset.reset",
     {"error"},
     "a jump over lost messages must not pass in silence; set the start with initial, and "
     "what "
     "happens when Kafka lost messages with out_of_range"},
    {"allow.auto.create.topics", kFalse,
     "a mistyped topic would be made, and found empty for ever"},
    {"isolation.level",
     {"read_committed"},
     "messages of aborted Kafka transactions would take effect"},
    {"check.crcs", kTrue, "a message damaged on its way would take effect"},
    {"enable.partition.eof", kTrue, "hapax sees by it that a partition is idle"},
    {"api.version.request", kTrue,
     "librdkafka would speak a protocol from before Kafka 0.11, in which messages have no headers"},
    {"group.protocol",
     {"classic"},
     "the new rebalance protocol (KIP-848) needs librdkafka 2.12 and a later release of hapax"},
};

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  return first == std::string::npos ? ""
                                    : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

constexpr std::int64_t kMinReceiveBytes = 2'000'000;

std::optional<std::int64_t> number_of(const std::string& value) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size()) return std::nullopt;
  return number;
}

// Properties that must not be there at all.
std::optional<std::string> presence_refusal(const std::string& property) {
  if (property == "metadata.broker.list") return "write bootstrap.servers instead";
  if (property == "topic.blacklist")
    return "a route's topic that it names would never be read, and no log would show it; remove it";
  if (property == "plugin.library.paths")
    return "librdkafka would load code that sees and may hold back every message; remove it";
  if (property.starts_with("test."))
    return "librdkafka would talk to a cluster of its own making instead of bootstrap.servers; "
           "remove it";
  return std::nullopt;
}

// Any comma-separated mix of range and roundrobin.
std::optional<std::string> assignment_refusal(const std::string& value) {
  std::size_t start = 0;
  while (start <= value.size()) {
    const auto end = std::min(value.size(), value.find(',', start));
    const std::string name = trimmed(value.substr(start, end - start));
    if (name == "cooperative-sticky") {
      return "cooperative-sticky loses its assignment with manual commits before librdkafka 2.10 "
             "(#4059), and hapax does not take it yet; allowed: range, roundrobin, "
             "\"range,roundrobin\"";
    }
    if (name != "range" && name != "roundrobin")
      return "allowed: range, roundrobin, \"range,roundrobin\"";
    start = end + 1;
  }
  return std::nullopt;
}

}  // namespace

bool verifies_brokers(const std::map<std::string, std::string>& properties) {
  const auto value = [&](const char* name) {
    const auto found = properties.find(name);
    return found == properties.end() ? std::string() : lower_case(found->second);
  };
  return std::find(kFalse.begin(), kFalse.end(), value("enable.ssl.certificate.verification")) ==
             kFalse.end() &&
         value("ssl.endpoint.identification.algorithm") != "none";
}

std::optional<int> milliseconds_of(const std::string& value) {
  const auto number = number_of(value);
  if (!number || *number != static_cast<int>(*number)) return std::nullopt;
  return static_cast<int>(*number);
}

std::optional<std::string> kafka_refusal(const std::string& property, const std::string& value) {
  // librdkafka takes topic.auto.offset.reset for auto.offset.reset.
  constexpr std::string_view kOfTopics = "topic.";
  const std::string_view name =
      std::string_view(property).substr(property.starts_with(kOfTopics) ? kOfTopics.size() : 0);
  for (const Rule& rule : kRules) {
    const auto& allowed = rule.allowed;
    if (rule.property != property && rule.property != name) continue;
    if (std::find(allowed.begin(), allowed.end(), lower_case(value)) != allowed.end()) return {};
    return std::string(rule.why) + "; remove it, or set it to " + std::string(allowed[0]);
  }
  if (property == "partition.assignment.strategy") return assignment_refusal(value);
  if (auto why = presence_refusal(property)) return why;
  if (property == "topic.metadata.refresh.interval.ms" && number_of(value).value_or(0) < 10)
    return "allowed: milliseconds, at least 10; without it no worker reads a partition that is "
           "added to a topic";
  if (property == "receive.message.max.bytes" && number_of(value).value_or(0) < kMinReceiveBytes)
    return "allowed: bytes, at least " + std::to_string(kMinReceiveBytes) +
           "; a message that Kafka takes would never fit, and its partition stand still";
  if (property == "max.poll.interval.ms" &&
      milliseconds_of(value).value_or(0) < kMinMaxPollIntervalMs) {
    return "allowed: milliseconds, at least " + std::to_string(kMinMaxPollIntervalMs) +
           "; Kafka would take the partitions away while a rebalance still waits for running "
           "messages";
  }
  return std::nullopt;
}

}  // namespace hapax::config
