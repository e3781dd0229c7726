#include "kafka/topic_settings.hpp"

#include <charconv>
#include <stdexcept>
#include <string_view>

#include "kafka/admin_client.hpp"

namespace hapax::kafka {
namespace {

using ResourceHandle =
    std::unique_ptr<rd_kafka_ConfigResource_t, Destroyer<rd_kafka_ConfigResource_destroy>>;

TopicSettings settings_of(const rd_kafka_ConfigResource_t& resource) {
  if (const auto error = rd_kafka_ConfigResource_error(&resource)) {
    const char* const text = rd_kafka_ConfigResource_error_string(&resource);
    throw std::runtime_error(text != nullptr ? text : rd_kafka_err2str(error));
  }
  TopicSettings settings;
  std::size_t count = 0;
  const rd_kafka_ConfigEntry_t** const entries = rd_kafka_ConfigResource_configs(&resource, &count);
  for (std::size_t i = 0; i < count; ++i) {
    const char* const value = rd_kafka_ConfigEntry_value(entries[i]);
    if (value == nullptr) continue;
    const std::string_view name = rd_kafka_ConfigEntry_name(entries[i]);
    const std::string_view text = value;
    if (name == "cleanup.policy") settings.cleanup_policy = text;
    std::int64_t number = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) continue;
    if (name == "retention.ms") settings.retention_ms = number;
    if (name == "max.message.bytes") settings.max_message_bytes = number;
  }
  return settings;
}

}  // namespace

TopicSettings read_topic_settings(const Properties& properties, const std::string& topic,
                                  std::chrono::milliseconds timeout) {
  const ClientHandle client = make_admin_client(properties);
  const QueueHandle queue(rd_kafka_queue_new(client.get()));
  const ResourceHandle resource(
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str()));
  rd_kafka_ConfigResource_t* resources[] = {resource.get()};
  rd_kafka_DescribeConfigs(client.get(), resources, 1, admin_options(client.get(), timeout).get(),
                           queue.get());
  const EventHandle event = admin_answer(queue.get(), timeout);
  const auto* const result = rd_kafka_event_DescribeConfigs_result(event.get());
  std::size_t count = 0;
  const rd_kafka_ConfigResource_t** const described =
      result != nullptr ? rd_kafka_DescribeConfigs_result_resources(result, &count) : nullptr;
  if (count != 1) throw std::runtime_error("the broker's answer does not name the topic");
  return settings_of(*described[0]);
}

}  // namespace hapax::kafka
