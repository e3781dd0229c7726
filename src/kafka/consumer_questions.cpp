// What a consumer may ask the cluster; any thread.
#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "kafka/admin_client.hpp"
#include "kafka/client_error.hpp"
#include "kafka/consumer.hpp"
#include "kafka/handles.hpp"
#include "kafka/producer.hpp"
#include "kafka/request.hpp"

namespace hapax::kafka {

using std::chrono::milliseconds;

namespace {

using MetadataHandle =
    std::unique_ptr<const struct rd_kafka_metadata, Destroyer<rd_kafka_metadata_destroy>>;

constexpr milliseconds kSlack{2'000};
constexpr milliseconds kLookAgain{100};
constexpr milliseconds kLeaderIsKnownAfter{1'000};  // else other partitions would wait for it

// Of this topic, or of the brokers only.
MetadataHandle metadata_of(rd_kafka_t* client, rd_kafka_topic_t* topic, const std::string& what,
                           milliseconds timeout) {
  const struct rd_kafka_metadata* metadata = nullptr;
  if (const auto error = rd_kafka_metadata(client, 0, topic, &metadata, timeout_of(timeout)))
    throw error_of("reading the metadata of " + what, error);
  return MetadataHandle(metadata);
}

// Of a member, in the bytes of Kafka's consumer protocol: version, then topics with partitions.
std::set<TopicPartition> assignment_of(std::string_view bytes) {
  const auto number = [&bytes](std::size_t size) {
    if (bytes.size() < size) throw std::runtime_error("a member's assignment is cut short");
    std::uint32_t value = 0;
    for (const char byte : bytes.substr(0, size))
      value = value << 8 | static_cast<unsigned char>(byte);
    bytes.remove_prefix(size);
    return value;
  };
  std::set<TopicPartition> partitions;
  if (bytes.empty()) return partitions;  // while the group rebalances
  number(2);
  for (std::uint32_t topics = number(4); topics > 0; --topics) {
    const std::uint32_t length = number(2);
    const std::string topic(bytes.substr(0, length));
    bytes.remove_prefix(std::min<std::size_t>(length, bytes.size()));
    for (std::uint32_t count = number(4); count > 0; --count)
      partitions.emplace(topic, static_cast<std::int32_t>(number(4)));
  }
  return partitions;
}

#if RD_KAFKA_VERSION >= 0x02030000
// librdkafka sends admin requests to the controller and waits until it is there; the one that its
// own mock cluster names never is.
bool has_controller(rd_kafka_t* client, milliseconds timeout) {
  const MetadataHandle metadata = metadata_of(client, nullptr, "the brokers", timeout);
  const std::int32_t controller = rd_kafka_controllerid(client, timeout_of(timeout));
  return std::any_of(metadata->brokers, metadata->brokers + metadata->broker_cnt,
                     [&](const auto& broker) { return broker.id == controller; });
}
#endif

std::string name_of(const std::vector<TopicPartition>& partitions) {
  return partitions.size() == 1 ? partitions[0].first + "/" + std::to_string(partitions[0].second)
                                : std::to_string(partitions.size()) + " partitions";
}

// The question to librdkafka, with a time in milliseconds since 1970, or the logs' beginnings or
// ends. Not by rd_kafka_query_watermark_offsets, which waits for a frozen broker beyond its
// timeout.
ListHandle question(const std::vector<TopicPartition>& partitions, std::int64_t time) {
  ListHandle list = new_list(partitions.size());
  for (const TopicPartition& partition : partitions) {
    rd_kafka_topic_partition_t& entry = add(list, partition);
    entry.offset = time;
    // Only an answer clears it: a question that is left in its place must not look like one.
    entry.err = RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
  }
  return list;
}

// Of those partitions that answered. If a broker does not know yet that it leads, it refuses all of
// the question. That is so just after the topic was made. So it is asked again.
std::map<TopicPartition, std::int64_t> offsets_for(rd_kafka_t* client,
                                                   const std::vector<TopicPartition>& partitions,
                                                   std::int64_t time, milliseconds timeout) {
  if (partitions.empty()) return {};
  const auto until = std::chrono::steady_clock::now() + std::min(timeout, kLeaderIsKnownAfter);
  ListHandle list = question(partitions, time);
  while (const auto error = rd_kafka_offsets_for_times(client, list.get(), timeout_of(timeout))) {
    if (error != RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION ||
        std::chrono::steady_clock::now() + kLookAgain > until)
      throw error_of("reading the offsets of " + name_of(partitions), error);
    std::this_thread::sleep_for(kLookAgain);
    list = question(partitions, time);
  }
  std::map<TopicPartition, std::int64_t> found;
  for (int i = 0; i < list->cnt; ++i)
    if (const auto& entry = list->elems[i]; entry.err == RD_KAFKA_RESP_ERR_NO_ERROR)
      found[{entry.topic, entry.partition}] = entry.offset;
  return found;
}

}  // namespace

std::map<TopicPartition, Committed> Consumer::committed(
    const std::vector<TopicPartition>& partitions, milliseconds timeout,
    std::map<TopicPartition, std::string>* refusals) const {
  const ListHandle list = new_list(partitions.size());
  for (const TopicPartition& partition : partitions) add(list, partition);
  if (const auto error = rd_kafka_committed(client_, list.get(), timeout_of(timeout)))
    throw error_of("reading committed offsets", error);
  std::map<TopicPartition, Committed> found;
  for (int i = 0; i < list->cnt; ++i) {
    const rd_kafka_topic_partition_t& entry = list->elems[i];
    if (entry.err) {
      if (refusals != nullptr)
        (*refusals)[{entry.topic, entry.partition}] = rd_kafka_err2str(entry.err);
      continue;
    }
    Committed& committed = found[{entry.topic, entry.partition}];
    if (entry.offset < 0) continue;
    committed.offset = entry.offset;
    if (entry.metadata != nullptr)
      committed.metadata.assign(static_cast<const char*>(entry.metadata), entry.metadata_size);
  }
  return found;
}

OffsetRange Consumer::range(const TopicPartition& partition, milliseconds timeout) const {
  const auto found = ranges({partition}, timeout);
  if (found.empty())
    throw error_of("reading the offsets of " + name_of({partition}),
                   RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE);
  return found.begin()->second;
}

std::map<TopicPartition, std::int64_t> Consumer::ends(const std::vector<TopicPartition>& partitions,
                                                      milliseconds timeout) const {
  return offsets_for(client_, partitions, RD_KAFKA_OFFSET_END, timeout);
}

std::map<TopicPartition, OffsetRange> Consumer::ranges(
    const std::vector<TopicPartition>& partitions, milliseconds timeout) const {
  const auto lows = offsets_for(client_, partitions, RD_KAFKA_OFFSET_BEGINNING, timeout);
  const auto highs = offsets_for(client_, partitions, RD_KAFKA_OFFSET_END, timeout);
  std::map<TopicPartition, OffsetRange> found;
  for (const auto& [id, low] : lows)
    if (const auto high = highs.find(id); high != highs.end()) found[id] = {low, high->second};
  return found;
}

std::map<TopicPartition, std::int64_t> Consumer::offsets_at(
    const std::vector<TopicPartition>& partitions, std::int64_t since, milliseconds timeout) const {
  auto found = offsets_for(client_, partitions, since, timeout);
  std::vector<TopicPartition> older;  // all of their messages are
  for (const auto& [id, offset] : found)
    if (offset < 0) older.push_back(id);
  const auto highs = ends(older, timeout);
  for (const TopicPartition& id : older) {
    if (const auto high = highs.find(id); high != highs.end()) {
      found[id] = high->second;
    } else {
      found.erase(id);
    }
  }
  return found;
}

std::int64_t Consumer::offset_at(const TopicPartition& partition, std::int64_t since,
                                 milliseconds timeout) const {
  const auto found = offsets_at({partition}, since, timeout);
  if (found.empty())
    throw error_of("reading the offsets of " + name_of({partition}),
                   RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE);
  return found.begin()->second;
}

std::string Consumer::cluster_id(milliseconds timeout) const {
  std::string id = kafka::cluster_id(client_, timeout);
  if (id.empty())
    throw std::runtime_error(
        "no broker answered in time: do kafka.bootstrap.servers name ports of brokers (not of "
        "KRaft controllers), and does kafka.security.protocol fit them?");
  return id;
}

// By the one request that librdkafka sends to the broker that it names. A refusal is an answer,
// too.
Consumer::Brokers Consumer::ask_brokers(milliseconds timeout) const {
  using Resource =
      std::unique_ptr<rd_kafka_ConfigResource_t, Destroyer<rd_kafka_ConfigResource_destroy>>;
  const MetadataHandle metadata = metadata_of(client_, nullptr, "the brokers", timeout);
  const QueueHandle queue(rd_kafka_queue_new(client_));
  const OptionsHandle options = admin_options(client_, timeout);
  Brokers brokers{static_cast<std::size_t>(metadata->broker_cnt), {}};
  for (int i = 0; i < metadata->broker_cnt; ++i) {
    rd_kafka_metadata_broker& broker = metadata->brokers[i];
    const Resource resource(
        rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_BROKER, std::to_string(broker.id).c_str()));
    rd_kafka_ConfigResource_t* resources[] = {resource.get()};
    rd_kafka_AdminOptions_set_opaque(options.get(), &broker);
    rd_kafka_DescribeConfigs(client_, resources, 1, options.get(), queue.get());
  }
  for (int i = 0; i < metadata->broker_cnt; ++i) {
    // librdkafka ends each question by itself, a little after its time.
    const EventHandle event(rd_kafka_queue_poll(queue.get(), timeout_of(timeout + kSlack)));
    if (!event) throw std::runtime_error("librdkafka did not end its questions to the brokers");
    const auto error = rd_kafka_event_error(event.get());
    if (error != RD_KAFKA_RESP_ERR__TIMED_OUT && error != RD_KAFKA_RESP_ERR__TRANSPORT) continue;
    const auto& broker =
        *static_cast<const rd_kafka_metadata_broker*>(rd_kafka_event_opaque(event.get()));
    brokers.silent.push_back(
        {broker.id, std::string(broker.host) + ":" + std::to_string(broker.port)});
  }
  return brokers;
}

int Consumer::partition_count(const std::string& topic, milliseconds timeout) const {
  std::unique_ptr<rd_kafka_topic_t, Destroyer<rd_kafka_topic_destroy>> handle(
      rd_kafka_topic_new(client_, topic.c_str(), nullptr));
  const MetadataHandle metadata = metadata_of(client_, handle.get(), "topic " + topic, timeout);
  if (metadata->topic_cnt != 1) return 0;
  const rd_kafka_metadata_topic& found = metadata->topics[0];
  if (found.err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) return 0;
  if (found.err != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw error_of("reading the metadata of topic " + topic, found.err);
  return found.partition_cnt;
}

// Not DescribeConsumerGroups: if it times out before the group's coordinator is known, librdkafka
// 2.0 aborts the process once a broker answers (`eonce->refcnt > 0`).
Members Consumer::members(const std::string& group, milliseconds timeout) const {
  const rd_kafka_group_list* found = nullptr;
  const auto error = rd_kafka_list_groups(client_, group.c_str(), &found, timeout_of(timeout));
  const std::unique_ptr<const rd_kafka_group_list, Destroyer<rd_kafka_group_list_destroy>> owned(
      found);
  // Partial: a broker did not answer. It may be the group's.
  if (error == RD_KAFKA_RESP_ERR__PARTIAL ? found->group_cnt == 0
                                          : error != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw error_of("describing the group", error);
  if (found->group_cnt == 0) return {"Dead", 0, {}};
  const rd_kafka_group_info& described = found->groups[0];
  if (described.err) throw error_of("describing the group", described.err);
  Members members;
  members.state = described.state;
  members.count = static_cast<std::size_t>(described.member_cnt);
  for (int i = 0; i < described.member_cnt; ++i) {
    const rd_kafka_group_member_info& member = described.members[i];
    members.partitions.merge(
        assignment_of({static_cast<const char*>(member.member_assignment),
                       static_cast<std::size_t>(std::max(member.member_assignment_size, 0))}));
  }
  return members;
}

std::optional<std::set<TopicPartition>> Consumer::assigned_in_group(const std::string& group,
                                                                    milliseconds timeout) const {
  Members found = members(group, timeout);
  if (found.state != "Stable") return std::nullopt;
  return std::move(found.partitions);
}

std::optional<std::int64_t> Consumer::known_end(const TopicPartition& partition) const {
  std::int64_t low = -1, high = -1;
  if (rd_kafka_get_watermark_offsets(client_, partition.first.c_str(), partition.second, &low,
                                     &high) != RD_KAFKA_RESP_ERR_NO_ERROR ||
      high < 0)
    return std::nullopt;
  return high;
}

bool can_tell_topic_ids() { return RD_KAFKA_VERSION >= 0x02030000; }

bool is_broken_by_another_topic_id() { return is_broken_by_another_id(rd_kafka_version()); }

std::string Consumer::topic_id([[maybe_unused]] const std::string& topic,
                               [[maybe_unused]] milliseconds timeout) const {
#if RD_KAFKA_VERSION >= 0x02030000
  if (!has_controller(client_, timeout)) return {};
  const QueueHandle queue(rd_kafka_queue_new(client_));
  const char* names[] = {topic.c_str()};
  std::unique_ptr<rd_kafka_TopicCollection_t, Destroyer<rd_kafka_TopicCollection_destroy>> topics(
      rd_kafka_TopicCollection_of_topic_names(names, 1));
  rd_kafka_DescribeTopics(client_, topics.get(), nullptr, queue.get());
  const EventHandle event(rd_kafka_queue_poll(queue.get(), timeout_of(timeout)));
  if (!event) throw std::runtime_error("no broker described the topic " + topic + " in time");
  const auto error = rd_kafka_event_error(event.get());
  if (error == RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE ||
      error == RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION)
    return {};
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) throw error_of("describing the topic " + topic, error);
  const auto* result = rd_kafka_event_DescribeTopics_result(event.get());
  std::size_t count = 0;
  const auto** described = result ? rd_kafka_DescribeTopics_result_topics(result, &count) : nullptr;
  if (count != 1) throw std::runtime_error("no broker described the topic " + topic);
  if (const auto refused = rd_kafka_error_code(rd_kafka_TopicDescription_error(described[0]));
      refused != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw error_of("describing the topic " + topic, refused);
  return text_of(rd_kafka_TopicDescription_topic_id(described[0]));
#else
  return {};
#endif
}

}  // namespace hapax::kafka
