#include "kafka/topic_settings.hpp"

#include <charconv>
#include <stdexcept>
#include <string_view>

#include "kafka/handles.hpp"

namespace hapax::kafka {
namespace {

using ClientHandle = std::unique_ptr<rd_kafka_t, Destroyer<rd_kafka_destroy>>;
using ResourceHandle =
    std::unique_ptr<rd_kafka_ConfigResource_t, Destroyer<rd_kafka_ConfigResource_destroy>>;
using OptionsHandle =
    std::unique_ptr<rd_kafka_AdminOptions_t, Destroyer<rd_kafka_AdminOptions_destroy>>;

ClientHandle make_client(const Properties& properties) {
  ConfHandle conf(rd_kafka_conf_new());
  char error[512];
  for (const auto& [name, value] : properties)
    if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), error, sizeof error) !=
        RD_KAFKA_CONF_OK)
      throw std::runtime_error("librdkafka refuses kafka." + name);
  rd_kafka_conf_set_log_cb(conf.get(), nullptr);
  ClientHandle client(rd_kafka_new(RD_KAFKA_CONSUMER, conf.get(), error, sizeof error));
  if (!client) throw std::runtime_error(error);
  conf.release();
  return client;
}

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
    if (name != "retention.ms") continue;
    std::int64_t number = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc())
      settings.retention_ms = number;
  }
  return settings;
}

}  // namespace

TopicSettings read_topic_settings(const Properties& properties, const std::string& topic,
                                  std::chrono::milliseconds timeout) {
  const ClientHandle client = make_client(properties);
  const int wait = static_cast<int>(timeout.count());
  const OptionsHandle options(rd_kafka_AdminOptions_new(client.get(), RD_KAFKA_ADMIN_OP_ANY));
  char error[512];
  rd_kafka_AdminOptions_set_request_timeout(options.get(), wait, error, sizeof error);
  const QueueHandle queue(rd_kafka_queue_new(client.get()));
  const ResourceHandle resource(
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str()));
  rd_kafka_ConfigResource_t* resources[] = {resource.get()};
  rd_kafka_DescribeConfigs(client.get(), resources, 1, options.get(), queue.get());
  const EventHandle event(rd_kafka_queue_poll(queue.get(), wait));
  if (!event) throw std::runtime_error("no broker answered in time");
  if (rd_kafka_event_error(event.get()))
    throw std::runtime_error(rd_kafka_event_error_string(event.get()));
  const auto* const result = rd_kafka_event_DescribeConfigs_result(event.get());
  std::size_t count = 0;
  const rd_kafka_ConfigResource_t** const described =
      result != nullptr ? rd_kafka_DescribeConfigs_result_resources(result, &count) : nullptr;
  if (count != 1) throw std::runtime_error("the broker's answer does not name the topic");
  return settings_of(*described[0]);
}

}  // namespace hapax::kafka
