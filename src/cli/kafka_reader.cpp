#include "cli/kafka_reader.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>

#include "cli/command.hpp"

namespace hapax::app {
namespace {

constexpr std::chrono::milliseconds kPoll{100};

std::string name_of(const kafka::TopicPartition& partition) {
  return partition.first + "/" + std::to_string(partition.second);
}

kafka::Properties properties_of(const config::Config& config, KafkaReader::End end) {
  kafka::Properties properties = config.kafka.properties;
  // librdkafka asks a broker one thing after the other, so a wait at the end of one partition would
  // hold up the next.
  properties["fetch.wait.max.ms"] = "10";
  if (end == KafkaReader::End::whole) properties["isolation.level"] = "read_uncommitted";
  return properties;
}

}  // namespace

KafkaReader::KafkaReader(const config::Config& config, End end) try
    : consumer_(properties_of(config, end), *this) {
} catch (const std::runtime_error& error) {
  throw Stop(kConfigWrong, error.what());
}

std::string KafkaReader::reach(std::chrono::milliseconds timeout) {
  try {
    return consumer_.cluster_id(timeout);
  } catch (const std::runtime_error&) {
    for (int i = 0; i < 5; ++i)  // on_client_error may be on its way, of other brokers, too
      consumer_.poll(std::chrono::milliseconds(100));
    if (errors_.empty()) throw;
    throw std::runtime_error(errors());
  }
}

std::string KafkaReader::errors() const {
  std::string text;
  for (const std::string& error : errors_) text += (text.empty() ? "" : "\n") + error;
  return text;
}

std::int64_t KafkaReader::read(const kafka::TopicPartition& partition, std::int64_t from,
                               std::int64_t to, const Take& take) {
  if (from >= to) return to;
  consumer_.assign({{partition, from}});
  std::optional<std::int64_t> ended;  // where reading did
  auto silent_since = std::chrono::steady_clock::now();
  while (!ended) {
    kafka::Event event = consumer_.poll(kPoll);
    if (!std::holds_alternative<std::monostate>(event)) {
      silent_since = std::chrono::steady_clock::now();
    } else if (std::chrono::steady_clock::now() - silent_since > kSilence) {
      throw std::runtime_error("nothing comes of " + name_of(partition) + " from " +
                               std::to_string(from) + " on, though its log is longer" +
                               (errors_.empty() ? "" : ": " + errors_.front()));
    }
    if (auto* record = std::get_if<std::unique_ptr<kafka::Record>>(&event)) {
      const std::int64_t offset = (*record)->message().offset();
      if (offset < to) take(std::move(*record));
      if (offset + 1 >= to) ended = to;
      from = offset + 1;
    } else if (const auto* end = std::get_if<kafka::EndOfPartition>(&event)) {
      ended = std::min(to, end->offset);
    } else if (const auto* error = std::get_if<kafka::PartitionError>(&event)) {
      throw std::runtime_error("cannot read " + name_of(partition) + " at offset " +
                               std::to_string(std::max(error->offset, from)) + ": " + error->text);
    } else if (const auto* client = std::get_if<kafka::ClientError>(&event); client != nullptr) {
      if (client->fatal) throw std::runtime_error(client->text);
    }
  }
  consumer_.assign({});  // fetches no more
  return *ended;
}

std::map<std::string, std::string> KafkaReader::refusals(
    const std::vector<kafka::Position>& positions, std::chrono::milliseconds timeout) {
  std::map<std::string, std::string> refused;
  std::set<std::string> unanswered;
  for (const kafka::Position& position : positions) unanswered.insert(position.partition.first);
  if (unanswered.empty()) return refused;
  consumer_.assign(positions);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!unanswered.empty() && std::chrono::steady_clock::now() < deadline) {
    kafka::Event event = consumer_.poll(kPoll);
    if (const auto* record = std::get_if<std::unique_ptr<kafka::Record>>(&event))
      unanswered.erase(std::string((*record)->message().topic()));
    if (const auto* end = std::get_if<kafka::EndOfPartition>(&event))
      unanswered.erase(end->partition.first);
    const auto* error = std::get_if<kafka::PartitionError>(&event);
    if (error == nullptr) continue;
    unanswered.erase(error->partition.first);
    if (error->kind == kafka::PartitionError::Kind::refused)
      refused[error->partition.first] = error->text;
  }
  consumer_.assign({});
  return refused;
}

}  // namespace hapax::app
