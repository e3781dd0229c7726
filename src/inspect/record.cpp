// hapax record: messages as they stand in Kafka, as JSON lines for tests of handlers.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/coordinates.hpp"
#include "cli/kafka_reader.hpp"
#include "cli/lines.hpp"
#include "cli/store_access.hpp"
#include "inspect/evidence.hpp"

namespace hapax::app {
namespace {

struct RecordOptions {
  ConfigOption config;
  std::string place;
  std::int64_t count = 1000;
  std::string file;
};

std::optional<std::string> text_of(const std::optional<std::string_view>& bytes) {
  return bytes ? std::optional(std::string(*bytes)) : std::nullopt;
}

const char* name_of(TimestampType type) {
  switch (type) {
    case TimestampType::create_time: return "create_time";
    case TimestampType::log_append_time: return "log_append_time";
    case TimestampType::none: break;
  }
  return "none";
}

// With the names that `hapax dead export` gives them, so that one reader takes both.
Json json_of(const Message& message) {
  Json headers = Json::array();
  for (const Header& header : message.headers())
    headers.push_back({{"name", bytes_json(std::string(header.name))},
                       {"value", bytes_json(text_of(header.value))}});
  const auto timestamp = message.timestamp();
  return {{"topic", std::string(message.topic())},
          {"partition", message.partition()},
          {"kafka_offset", message.offset()},
          {"message_timestamp", timestamp ? Json(timestamp->time_since_epoch().count()) : Json()},
          {"timestamp_type", name_of(message.timestamp_type())},
          {"message_key", bytes_json(text_of(message.key()))},
          {"headers", std::move(headers)},
          {"payload", bytes_json(text_of(message.payload()))}};
}

// Its newest offsets, at most `count`; or from an offset on.
KafkaReader::Stretch stretch_of(const kafka::TopicPartition& partition,
                                const kafka::OffsetRange& log, const Place& place,
                                std::int64_t count) {
  if (!place.offset) return {partition, std::max(log.low, log.high - count), log.high};
  if (*place.offset < log.low || *place.offset >= log.high)
    throw Stop(kFailed, "Kafka's log holds no offset " + std::to_string(*place.offset) +
                            "; it holds " + std::to_string(log.low) + " to " +
                            std::to_string(log.high - 1));
  return {partition, *place.offset, std::min(log.high, *place.offset + count)};
}

std::vector<KafkaReader::Stretch> stretches_of(const kafka::Consumer& consumer, const Place& place,
                                               std::int64_t count) {
  const int partitions = consumer.partition_count(place.topic, kKafkaTimeout);
  expect_partition(place.topic, partitions, place.partition.value_or(0));
  std::vector<kafka::TopicPartition> wanted;
  for (std::int32_t partition = 0; partition < partitions; ++partition)
    if (!place.partition || *place.partition == partition)
      wanted.emplace_back(place.topic, partition);
  const auto many = static_cast<std::int64_t>(wanted.size());
  std::vector<KafkaReader::Stretch> stretches;
  for (const auto& [partition, log] : consumer.ranges(wanted, kKafkaTimeout))
    stretches.push_back(stretch_of(partition, log, place, (count + many - 1) / many));
  if (stretches.size() < wanted.size())
    throw Stop(kUnreachable, "Kafka does not tell what topic " + place.topic +
                                 " holds: may the user of kafka.* read it?");
  return stretches;
}

ExitCode record(const RecordOptions& options) {
  const config::Config config = load(options.config);
  const auto place = parse_place(options.place);
  if (!place) throw Stop(kUsage, "\"" + options.place + "\" is no TOPIC[/PARTITION[/OFFSET]]");
  KafkaReader reader(config);
  Lines lines(options.file);
  std::int64_t written = 0;
  asking_kafka([&] {
    reader.reach(kKafkaTimeout);
    const auto stretches = stretches_of(reader.consumer(), *place, options.count);
    reader.read(stretches, [&](std::unique_ptr<kafka::Record> record) {
      if (written == options.count) return;
      lines.write(json_of(record->message()).dump());
      ++written;
    });
  });
  lines.end();
  std::fprintf(stderr, "recorded: %lld\n", static_cast<long long>(written));
  return kDone;
}

}  // namespace

void add_record(CLI::App& app, CommandLine& line) {
  auto* const command = app.add_subcommand(
      "record", "Write messages of a topic as JSON lines, for the test kit; docs/testing.md");
  const auto options = std::make_shared<RecordOptions>();
  add_config(*command, options->config);
  command
      ->add_option("PLACE", options->place,
                   "TOPIC or TOPIC/PARTITION: the newest messages. With /OFFSET: from there on")
      ->required();
  command
      ->add_option("--count", options->count,
                   "At most so many (default 1000), an equal part of each partition")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--out", options->file, "A file that is not there yet (default: stdout)");
  command->footer(
      "It reads as a worker does, joins no group and commits nothing. The lines hold whole\n"
      "payloads: treat the file as you treat the topic.\n"
      "Examples:\n"
      "  hapax record -c worker.json payments --count 1000 --out messages.jsonl\n"
      "  hapax record -c worker.json payments/3/8120 --count 1 | jq .payload");
  command->callback([&line, options] { line.command = [options] { return record(*options); }; });
}

}  // namespace hapax::app
