#include "app/kafka_reader.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "app/command.hpp"

namespace hapax::app {
namespace {

constexpr std::chrono::milliseconds kPoll{100};

std::string name_of(const kafka::TopicPartition& partition) {
  return partition.first + "/" + std::to_string(partition.second);
}

}  // namespace

KafkaReader::KafkaReader(const config::Config& config) try
    : consumer_(config.kafka.properties, *this) {
} catch (const std::runtime_error& error) {
  throw Stop(kConfigWrong, error.what());
}

std::string KafkaReader::reach(std::chrono::milliseconds timeout) {
  try {
    return consumer_.cluster_id(timeout);
  } catch (const std::runtime_error&) {
    for (int i = 0; i < 5 && first_error_.empty(); ++i)  // on_client_error may be on its way
      consumer_.poll(std::chrono::milliseconds(100));
    if (first_error_.empty()) throw;
    throw std::runtime_error(first_error_);
  }
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
                               (first_error_.empty() ? "" : ": " + first_error_));
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

}  // namespace hapax::app
