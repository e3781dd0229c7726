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

std::string KafkaReader::error_of(const kafka::Broker& broker) {
  consumer_.poll(kPoll);  // calls on_client_error
  const std::string name = broker.address + "/" + std::to_string(broker.id) + ": ";
  for (const std::string& error : errors_)
    if (const auto at = error.find(name); at != std::string::npos)
      return error.substr(at + name.size());
  return "";
}

std::string KafkaReader::errors() const {
  std::string text;
  for (const std::string& error : errors_) text += (text.empty() ? "" : "\n") + error;
  return text;
}

std::vector<std::int64_t> KafkaReader::read(const std::vector<Stretch>& stretches,
                                            const Take& take) {
  std::vector<std::int64_t> ends;
  std::map<kafka::TopicPartition, std::size_t> open;  // those that are read, by their places
  std::vector<kafka::Position> positions;
  for (const Stretch& stretch : stretches) {
    if (stretch.from < stretch.to) {
      open[stretch.partition] = ends.size();
      positions.push_back({stretch.partition, stretch.from});
    }
    ends.push_back(stretch.from < stretch.to ? stretch.from : stretch.to);
  }
  if (!open.empty()) consumer_.assign(positions);
  auto silent_since = std::chrono::steady_clock::now();
  const auto place_of = [&](const kafka::TopicPartition& partition) -> std::optional<std::size_t> {
    const auto found = open.find(partition);
    return found == open.end() ? std::nullopt : std::optional(found->second);
  };
  const auto close = [&](const kafka::TopicPartition& partition, std::int64_t end) {
    ends[open.at(partition)] = end;
    open.erase(partition);
    consumer_.pause({partition});
  };
  while (!open.empty()) {
    kafka::Event event = consumer_.poll(kPoll);
    if (!std::holds_alternative<std::monostate>(event)) {
      silent_since = std::chrono::steady_clock::now();
    } else if (std::chrono::steady_clock::now() - silent_since > kSilence) {
      const auto& [partition, place] = *open.begin();
      throw std::runtime_error("nothing comes of " + name_of(partition) + " from " +
                               std::to_string(ends[place]) + " on, though its log is longer" +
                               (errors_.empty() ? "" : ": " + errors_.front()));
    }
    if (auto* record = std::get_if<std::unique_ptr<kafka::Record>>(&event)) {
      const Message& message = (*record)->message();
      const kafka::TopicPartition partition(message.topic(), message.partition());
      const std::int64_t offset = message.offset();
      const auto place = place_of(partition);
      if (!place) continue;  // it was on its way
      const std::int64_t to = stretches[*place].to;
      if (offset < to) take(std::move(*record));
      ends[*place] = offset + 1;
      if (offset + 1 >= to) close(partition, to);
    } else if (const auto* end = std::get_if<kafka::EndOfPartition>(&event)) {
      if (const auto place = place_of(end->partition))
        close(end->partition, std::min(stretches[*place].to, end->offset));
    } else if (const auto* error = std::get_if<kafka::PartitionError>(&event)) {
      if (const auto place = place_of(error->partition))
        throw std::runtime_error("cannot read " + name_of(error->partition) + " at offset " +
                                 std::to_string(std::max(error->offset, ends[*place])) + ": " +
                                 error->text);
    } else if (const auto* client = std::get_if<kafka::ClientError>(&event); client != nullptr) {
      if (client->fatal) throw std::runtime_error(client->text);
    }
  }
  consumer_.assign({});  // fetches no more
  return ends;
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
