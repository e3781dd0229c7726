#include "inspect/published.hpp"

#include "cli/kafka_reader.hpp"
#include "inspect/evidence.hpp"
#include "store/operator/inspect.hpp"

namespace hapax::app {
namespace {

constexpr int kMaxUnsent = 50;

std::unique_ptr<kafka::Record> read_one(const config::Config& config, const Place& place) {
  std::unique_ptr<kafka::Record> found;
  asking_kafka([&] {
    KafkaReader reader(config);
    reader.reach(kKafkaTimeout);
    expect_partition(place.topic, reader.consumer().partition_count(place.topic, kKafkaTimeout),
                     *place.partition);
    const kafka::TopicPartition partition(place.topic, *place.partition);
    const kafka::OffsetRange log = reader.consumer().range(partition, kKafkaTimeout);
    if (*place.offset >= log.low && *place.offset < log.high)
      reader.read({{partition, *place.offset, *place.offset + 1}},
                  [&](auto record) { found = std::move(record); });
    if (!found)
      throw Stop(kFailed, "Kafka has no record there; the log holds " + std::to_string(log.low) +
                              " to " + std::to_string(log.high) + ", the last not included");
  });
  return found;
}

}  // namespace

Origin read_origin(const config::Config& config, const Place& place) {
  const auto record = read_one(config, place);
  const auto origin = origin_of(record->message());
  if (!origin) throw Stop(kFailed, "no outbox has sent this record: it has no header hapax-origin");
  return *origin;
}

Json origin_json(const Origin& origin) {
  return {{"group", origin.source.group},           {"topic", origin.source.topic},
          {"generation", origin.source.generation}, {"partition", origin.source.partition},
          {"offset", origin.source.offset},         {"idempotency_key", origin.idempotency_key}};
}

std::string name_of(const Origin& origin) {
  const store::Source& source = origin.source;
  return source.topic + "/" + std::to_string(source.partition) + "/" +
         std::to_string(source.offset) + " of group " + source.group + " (generation " +
         std::to_string(source.generation) + "), idempotency-key " + origin.idempotency_key;
}

// By position, and after retention, no key tells what took effect. What waits is told all the same.
Json published_json(const config::Config& config, store::Session& session, const Standing& standing,
                    const Facts& facts) {
  store::Source source{standing.group, standing.partition.first, standing.generation,
                       standing.partition.second, facts.offset};
  bool took_effect = classify(standing, facts) == Verdict::completed;
  if (facts.key && facts.key->holder.status == "completed" && facts.same_payload) {
    const store::KeyHolder& holder = facts.key->holder;
    source = {holder.group, holder.topic, holder.generation, holder.partition, holder.offset};
    took_effect = true;
  }
  Json unsent = store::read_unsent_of(session, source, kMaxUnsent);
  if (unsent.empty() && (!took_effect || config.publish.topics.empty())) return nullptr;
  return {{"origin", origin_text(source)},
          {"topics", config.publish.topics},
          {"unsent", std::move(unsent)},
          {"skipped_of_group", store::count_skipped(session, source.group)}};
}

void print_published(const Json& published) {
  if (published.is_null()) return;
  for (const Json& record : published.at("unsent"))
    print_line("unsent       record " + cell(record.at("id")) + " for " + cell(record.at("topic")) +
               (record.at("idempotency_key") == ""
                    ? ", a dead letter"
                    : ", idempotency-key " + cell(record.at("idempotency_key"))) +
               "; hapax outbox show " + cell(record.at("id")));
  std::string topics;
  for (const Json& topic : published.at("topics"))
    topics += (topics.empty() ? "" : ", ") + cell(topic);
  if (topics.empty()) return;
  print_line(std::string("published    ") +
             (published.at("unsent").empty() ? "nothing of it is unsent. " : "") +
             "What it has published has the header hapax-origin: " + cell(published.at("origin")) +
             ", in one of: " + topics);
  if (const Json& skipped = published.at("skipped_of_group"); skipped != 0)
    print_line("             Or an operator skipped it: " + cell(skipped) +
               " records of the group were, and hapax.operator_log has them");
}

}  // namespace hapax::app
