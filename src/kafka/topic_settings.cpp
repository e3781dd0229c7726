#include "kafka/topic_settings.hpp"

#include <charconv>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>

#include "kafka/admin_client.hpp"

namespace hapax::kafka {
namespace {

using ResourceHandle =
    std::unique_ptr<rd_kafka_ConfigResource_t, Destroyer<rd_kafka_ConfigResource_destroy>>;

using MetadataHandle =
    std::unique_ptr<const struct rd_kafka_metadata, Destroyer<rd_kafka_metadata_destroy>>;
using Settings = std::map<std::string, std::string, std::less<>>;

Settings settings_of(const rd_kafka_ConfigResource_t& resource) {
  if (const auto error = rd_kafka_ConfigResource_error(&resource)) {
    const char* const text = rd_kafka_ConfigResource_error_string(&resource);
    throw std::runtime_error(text != nullptr ? text : rd_kafka_err2str(error));
  }
  Settings settings;
  std::size_t count = 0;
  const rd_kafka_ConfigEntry_t** const entries = rd_kafka_ConfigResource_configs(&resource, &count);
  for (std::size_t i = 0; i < count; ++i)
    if (const char* const value = rd_kafka_ConfigEntry_value(entries[i]))
      settings.emplace(rd_kafka_ConfigEntry_name(entries[i]), value);
  return settings;
}

Settings describe(rd_kafka_t* client, rd_kafka_ResourceType_t type, const std::string& name,
                  std::chrono::milliseconds timeout) {
  const QueueHandle queue(rd_kafka_queue_new(client));
  const ResourceHandle resource(rd_kafka_ConfigResource_new(type, name.c_str()));
  rd_kafka_ConfigResource_t* resources[] = {resource.get()};
  rd_kafka_DescribeConfigs(client, resources, 1, admin_options(client, timeout).get(), queue.get());
  const EventHandle event = admin_answer(queue.get(), timeout);
  const auto* const result = rd_kafka_event_DescribeConfigs_result(event.get());
  std::size_t count = 0;
  const rd_kafka_ConfigResource_t** const described =
      result != nullptr ? rd_kafka_DescribeConfigs_result_resources(result, &count) : nullptr;
  if (count != 1) throw std::runtime_error("the broker's answer does not name " + name);
  return settings_of(*described[0]);
}

std::optional<std::int64_t> number_of(const Settings& settings, std::string_view name) {
  const auto found = settings.find(name);
  if (found == settings.end()) return std::nullopt;
  const std::string& text = found->second;
  std::int64_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc())
    return std::nullopt;
  return number;
}

}  // namespace

namespace {

TopicSettings topic_settings_of(rd_kafka_t* client, const std::string& topic,
                                std::chrono::milliseconds timeout) {
  const Settings settings = describe(client, RD_KAFKA_RESOURCE_TOPIC, topic, timeout);
  const auto policy = settings.find("cleanup.policy");
  return {number_of(settings, "retention.ms"), policy == settings.end() ? "" : policy->second,
          number_of(settings, "max.message.bytes")};
}

}  // namespace

TopicSettings Consumer::topic_settings(const std::string& topic,
                                       std::chrono::milliseconds timeout) const {
  return topic_settings_of(client_, topic, timeout);
}

TopicSettings read_topic_settings(const Properties& properties, const std::string& topic,
                                  std::chrono::milliseconds timeout) {
  return topic_settings_of(make_admin_client(properties).get(), topic, timeout);
}

std::optional<std::chrono::minutes> read_offsets_retention(const Properties& properties,
                                                           std::chrono::milliseconds timeout) {
  const ClientHandle client = make_admin_client(properties);
  const struct rd_kafka_metadata* raw = nullptr;
  if (const auto error =
          rd_kafka_metadata(client.get(), 0, nullptr, &raw, static_cast<int>(timeout.count())))
    throw std::runtime_error(rd_kafka_err2str(error));
  const MetadataHandle metadata(raw);
  if (metadata->broker_cnt == 0) throw std::runtime_error("Kafka names no broker");
  const Settings settings = describe(client.get(), RD_KAFKA_RESOURCE_BROKER,
                                     std::to_string(metadata->brokers[0].id), timeout);
  const auto minutes = number_of(settings, "offsets.retention.minutes");
  if (!minutes) return std::nullopt;
  return std::chrono::minutes(*minutes);
}

}  // namespace hapax::kafka
