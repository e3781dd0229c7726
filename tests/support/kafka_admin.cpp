#include "support/kafka_admin.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <thread>

#include "support/client.hpp"

namespace hapax::support {
namespace {

constexpr int kAdminPatienceMs = 30'000;

using Client = std::unique_ptr<rd_kafka_t, kafka::Destroyer<rd_kafka_destroy>>;
using NewTopic = std::unique_ptr<rd_kafka_NewTopic_t, kafka::Destroyer<rd_kafka_NewTopic_destroy>>;
using OldTopic =
    std::unique_ptr<rd_kafka_DeleteTopic_t, kafka::Destroyer<rd_kafka_DeleteTopic_destroy>>;
using NewPartitions =
    std::unique_ptr<rd_kafka_NewPartitions_t, kafka::Destroyer<rd_kafka_NewPartitions_destroy>>;
using Options =
    std::unique_ptr<rd_kafka_AdminOptions_t, kafka::Destroyer<rd_kafka_AdminOptions_destroy>>;

Client client(const std::string& bootstrap) {
  return Client(make_client(RD_KAFKA_PRODUCER, configuration(bootstrap, {})));
}

// A consumer that never joins its group.
Client member(const std::string& bootstrap, const std::string& group) {
  return Client(make_client(RD_KAFKA_CONSUMER, configuration(bootstrap, {{"group.id", group}})));
}

// The broker answers when the topic is made or gone in all of it, not only in the controller.
Options until_done(rd_kafka_t* client, rd_kafka_admin_op_t operation) {
  Options options(rd_kafka_AdminOptions_new(client, operation));
  char error[512];
  check(rd_kafka_AdminOptions_set_request_timeout(options.get(), kAdminPatienceMs, error,
                                                  sizeof error),
        error);
  check(rd_kafka_AdminOptions_set_operation_timeout(options.get(), kAdminPatienceMs / 2, error,
                                                    sizeof error),
        error);
  return options;
}

void check_topic(const rd_kafka_topic_result_t* result) {
  if (rd_kafka_topic_result_error(result) != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw std::runtime_error(std::string("topic ") + rd_kafka_topic_result_name(result) + ": " +
                             rd_kafka_topic_result_error_string(result));
}

kafka::EventHandle answer(rd_kafka_queue_t* queue, const std::string& what) {
  kafka::EventHandle event(rd_kafka_queue_poll(queue, kAdminPatienceMs));
  if (!event) throw std::runtime_error(what + ": no answer");
  check(rd_kafka_event_error(event.get()), what);
  return event;
}

// The controller answers before the broker has taken a change over. Polls, as Kafka does not tell.
void until(const std::string& what, const std::function<bool()>& broker_knows) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(kAdminPatienceMs);
  while (!broker_knows()) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error(what + ": the broker has not taken it over");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

kafka::ListHandle one(const std::string& topic, std::int32_t partition) {
  kafka::ListHandle list(rd_kafka_topic_partition_list_new(1));
  rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), partition);
  return list;
}

// Asks for all topics: a question for one could make it.
bool has_topic(rd_kafka_t* client, const std::string& name) {
  const struct rd_kafka_metadata* raw = nullptr;
  check(rd_kafka_metadata(client, 1, nullptr, &raw, kAdminPatienceMs), "has_topic");
  const std::unique_ptr<const struct rd_kafka_metadata, kafka::Destroyer<rd_kafka_metadata_destroy>>
      metadata(raw);
  const std::span topics(raw->topics, static_cast<std::size_t>(raw->topic_cnt));
  return std::ranges::any_of(topics, [&](const auto& topic) { return topic.topic == name; });
}

}  // namespace

void create_topic(const std::string& bootstrap, const std::string& name, int partitions,
                  const std::map<std::string, std::string>& configs) {
  const Client admin = client(bootstrap);
  const kafka::QueueHandle queue(rd_kafka_queue_new(admin.get()));
  char error[512];
  const NewTopic topic(rd_kafka_NewTopic_new(name.c_str(), partitions, 1, error, sizeof error));
  if (!topic) throw std::runtime_error(error);
  for (const auto& [property, value] : configs)
    check(rd_kafka_NewTopic_set_config(topic.get(), property.c_str(), value.c_str()), property);
  rd_kafka_NewTopic_t* topics[] = {topic.get()};
  rd_kafka_CreateTopics(admin.get(), topics, 1,
                        until_done(admin.get(), RD_KAFKA_ADMIN_OP_CREATETOPICS).get(), queue.get());
  const auto event = answer(queue.get(), "create_topic");
  std::size_t count = 0;
  check_topic(rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event.get()),
                                                  &count)[0]);
}

void add_partitions(const std::string& bootstrap, const std::string& topic, int partitions) {
  const Client admin = client(bootstrap);
  const kafka::QueueHandle queue(rd_kafka_queue_new(admin.get()));
  char error[512];
  const NewPartitions wanted(rd_kafka_NewPartitions_new(
      topic.c_str(), static_cast<std::size_t>(partitions), error, sizeof error));
  if (!wanted) throw std::runtime_error(error);
  rd_kafka_NewPartitions_t* all[] = {wanted.get()};
  rd_kafka_CreatePartitions(admin.get(), all, 1,
                            until_done(admin.get(), RD_KAFKA_ADMIN_OP_CREATEPARTITIONS).get(),
                            queue.get());
  const auto event = answer(queue.get(), "add_partitions");
  std::size_t count = 0;
  check_topic(rd_kafka_CreatePartitions_result_topics(
      rd_kafka_event_CreatePartitions_result(event.get()), &count)[0]);
}

namespace {

using Acl = std::unique_ptr<rd_kafka_AclBinding_t, kafka::Destroyer<rd_kafka_AclBinding_destroy>>;

Acl acl(rd_kafka_ResourceType_t type, const std::string& name, rd_kafka_AclOperation_t operation,
        rd_kafka_AclPermissionType_t permission) {
  char error[512];
  Acl made(rd_kafka_AclBinding_new(type, name.c_str(), RD_KAFKA_RESOURCE_PATTERN_LITERAL, "User:*",
                                   "*", operation, permission, error, sizeof error));
  if (!made) throw std::runtime_error(error);
  return made;
}

// Whether the broker refuses this to all users.
bool denies(rd_kafka_t* admin, rd_kafka_ResourceType_t type, const std::string& name,
            rd_kafka_AclOperation_t operation) {
  const kafka::QueueHandle queue(rd_kafka_queue_new(admin));
  char error[512];
  const Acl filter(rd_kafka_AclBindingFilter_new(
      type, name.c_str(), RD_KAFKA_RESOURCE_PATTERN_LITERAL, nullptr, nullptr, operation,
      RD_KAFKA_ACL_PERMISSION_TYPE_DENY, error, sizeof error));
  if (!filter) throw std::runtime_error(error);
  rd_kafka_DescribeAcls(admin, filter.get(), nullptr, queue.get());
  const auto event = answer(queue.get(), "denies");
  std::size_t count = 0;
  rd_kafka_DescribeAcls_result_acls(rd_kafka_event_DescribeAcls_result(event.get()), &count);
  return count > 0;
}

// Everything is allowed but this.
void deny(const std::string& bootstrap, rd_kafka_ResourceType_t type, const std::string& name,
          rd_kafka_AclOperation_t operation) {
  const Client admin = client(bootstrap);
  const kafka::QueueHandle queue(rd_kafka_queue_new(admin.get()));
  const Acl allow = acl(type, name, RD_KAFKA_ACL_OPERATION_ALL, RD_KAFKA_ACL_PERMISSION_TYPE_ALLOW);
  const Acl denied = acl(type, name, operation, RD_KAFKA_ACL_PERMISSION_TYPE_DENY);
  rd_kafka_AclBinding_t* both[] = {allow.get(), denied.get()};
  rd_kafka_CreateAcls(admin.get(), both, 2, nullptr, queue.get());
  (void)answer(queue.get(), "deny");
  until("deny " + name, [&] { return denies(admin.get(), type, name, operation); });
}

void allow(const std::string& bootstrap, rd_kafka_ResourceType_t type, const std::string& name,
           rd_kafka_AclOperation_t operation) {
  const Client admin = client(bootstrap);
  const kafka::QueueHandle queue(rd_kafka_queue_new(admin.get()));
  char error[512];
  const Acl filter(rd_kafka_AclBindingFilter_new(
      type, name.c_str(), RD_KAFKA_RESOURCE_PATTERN_LITERAL, nullptr, nullptr, operation,
      RD_KAFKA_ACL_PERMISSION_TYPE_DENY, error, sizeof error));
  if (!filter) throw std::runtime_error(error);
  rd_kafka_AclBindingFilter_t* filters[] = {filter.get()};
  rd_kafka_DeleteAcls(admin.get(), filters, 1, nullptr, queue.get());
  (void)answer(queue.get(), "allow " + name);
  until("allow " + name, [&] { return !denies(admin.get(), type, name, operation); });
}

}  // namespace

void deny_read(const std::string& bootstrap, const std::string& topic) {
  deny(bootstrap, RD_KAFKA_RESOURCE_TOPIC, topic, RD_KAFKA_ACL_OPERATION_READ);
}
void allow_read(const std::string& bootstrap, const std::string& topic) {
  allow(bootstrap, RD_KAFKA_RESOURCE_TOPIC, topic, RD_KAFKA_ACL_OPERATION_READ);
}
void deny_write(const std::string& bootstrap, const std::string& topic) {
  deny(bootstrap, RD_KAFKA_RESOURCE_TOPIC, topic, RD_KAFKA_ACL_OPERATION_WRITE);
}
void allow_write(const std::string& bootstrap, const std::string& topic) {
  allow(bootstrap, RD_KAFKA_RESOURCE_TOPIC, topic, RD_KAFKA_ACL_OPERATION_WRITE);
}
void deny_describe(const std::string& bootstrap, const std::string& group) {
  deny(bootstrap, RD_KAFKA_RESOURCE_GROUP, group, RD_KAFKA_ACL_OPERATION_DESCRIBE);
}

void deny_describe_configs(const std::string& bootstrap) {
  deny(bootstrap, RD_KAFKA_RESOURCE_BROKER, "kafka-cluster",
       RD_KAFKA_ACL_OPERATION_DESCRIBE_CONFIGS);
}

void deny_group(const std::string& bootstrap, const std::string& group) {
  deny(bootstrap, RD_KAFKA_RESOURCE_GROUP, group, RD_KAFKA_ACL_OPERATION_READ);
}

void allow_group(const std::string& bootstrap, const std::string& group) {
  allow(bootstrap, RD_KAFKA_RESOURCE_GROUP, group, RD_KAFKA_ACL_OPERATION_READ);
}

namespace {

using Config =
    std::unique_ptr<rd_kafka_ConfigResource_t, kafka::Destroyer<rd_kafka_ConfigResource_destroy>>;

// Whether these, and no others, are set for the topic.
bool has_configs(rd_kafka_t* admin, const std::string& topic,
                 const std::map<std::string, std::string>& configs) {
  const kafka::QueueHandle queue(rd_kafka_queue_new(admin));
  const Config asked(rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str()));
  rd_kafka_ConfigResource_t* resources[] = {asked.get()};
  rd_kafka_DescribeConfigs(admin, resources, 1, nullptr, queue.get());
  const auto event = answer(queue.get(), "has_configs");
  std::size_t count = 0;
  const auto* const found = rd_kafka_DescribeConfigs_result_resources(
      rd_kafka_event_DescribeConfigs_result(event.get()), &count)[0];
  const auto* const entries = rd_kafka_ConfigResource_configs(found, &count);
  std::map<std::string, std::string> set;
  for (std::size_t i = 0; i < count; ++i)
    if (rd_kafka_ConfigEntry_source(entries[i]) == RD_KAFKA_CONFIG_SOURCE_DYNAMIC_TOPIC_CONFIG)
      set[rd_kafka_ConfigEntry_name(entries[i])] = rd_kafka_ConfigEntry_value(entries[i]);
  return set == configs;
}

}  // namespace

void configure_topic(const std::string& bootstrap, const std::string& topic,
                     const std::map<std::string, std::string>& configs) {
  const Client admin = client(bootstrap);
  const kafka::QueueHandle queue(rd_kafka_queue_new(admin.get()));
  const Config resource(rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str()));
  for (const auto& [property, value] : configs)
    check(rd_kafka_ConfigResource_set_config(resource.get(), property.c_str(), value.c_str()),
          property);
  rd_kafka_ConfigResource_t* resources[] = {resource.get()};
  rd_kafka_AlterConfigs(admin.get(), resources, 1, nullptr, queue.get());
  const auto event = answer(queue.get(), "configure_topic");
  std::size_t count = 0;
  check(rd_kafka_ConfigResource_error(rd_kafka_AlterConfigs_result_resources(
            rd_kafka_event_AlterConfigs_result(event.get()), &count)[0]),
        "configure_topic");
  until("configure " + topic, [&] { return has_configs(admin.get(), topic, configs); });
}

void delete_topic(const std::string& bootstrap, const std::string& name) {
  const Client admin = client(bootstrap);
  const kafka::QueueHandle queue(rd_kafka_queue_new(admin.get()));
  const OldTopic topic(rd_kafka_DeleteTopic_new(name.c_str()));
  rd_kafka_DeleteTopic_t* topics[] = {topic.get()};
  rd_kafka_DeleteTopics(admin.get(), topics, 1,
                        until_done(admin.get(), RD_KAFKA_ADMIN_OP_DELETETOPICS).get(), queue.get());
  const auto event = answer(queue.get(), "delete_topic");
  std::size_t count = 0;
  check_topic(rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event.get()),
                                                  &count)[0]);
  until("delete " + name, [&] { return !has_topic(admin.get(), name); });
}

void delete_records(const std::string& bootstrap, const std::string& topic, std::int32_t partition,
                    std::int64_t before) {
  const Client admin = client(bootstrap);
  const kafka::QueueHandle queue(rd_kafka_queue_new(admin.get()));
  const kafka::ListHandle list = one(topic, partition);
  list->elems[0].offset = before;
  const std::unique_ptr<rd_kafka_DeleteRecords_t, kafka::Destroyer<rd_kafka_DeleteRecords_destroy>>
      wanted(rd_kafka_DeleteRecords_new(list.get()));
  rd_kafka_DeleteRecords_t* all[] = {wanted.get()};
  rd_kafka_DeleteRecords(admin.get(), all, 1,
                         until_done(admin.get(), RD_KAFKA_ADMIN_OP_DELETERECORDS).get(),
                         queue.get());
  const auto event = answer(queue.get(), "delete_records");
  check(rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event.get()))
            ->elems[0]
            .err,
        "delete_records");
}

std::optional<GroupOffset> committed(const std::string& bootstrap, const std::string& group,
                                     const std::string& topic, std::int32_t partition) {
  const Client consumer = member(bootstrap, group);
  const kafka::ListHandle list = one(topic, partition);
  check(rd_kafka_committed(consumer.get(), list.get(), kAdminPatienceMs), "committed");
  const rd_kafka_topic_partition_t& found = list->elems[0];
  check(found.err, "committed");
  if (found.offset < 0) return std::nullopt;
  return GroupOffset{found.offset,
                     std::string(static_cast<const char*>(found.metadata), found.metadata_size)};
}

void reset_offset(const std::string& bootstrap, const std::string& group, const std::string& topic,
                  std::int32_t partition, const GroupOffset& offset) {
  const Client consumer = member(bootstrap, group);
  const kafka::ListHandle list = one(topic, partition);
  rd_kafka_topic_partition_t& element = list->elems[0];
  element.offset = offset.offset;
  // librdkafka frees it with the list.
  element.metadata = std::malloc(offset.metadata.size() + 1);
  element.metadata_size = offset.metadata.size();
  std::memcpy(element.metadata, offset.metadata.c_str(), offset.metadata.size() + 1);
  check(rd_kafka_commit(consumer.get(), list.get(), 0), "commit");
  check(element.err, "commit");
}

namespace {

std::int64_t end_of(const Client& consumer, const std::string& topic, std::int32_t partition) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  check(rd_kafka_query_watermark_offsets(consumer.get(), topic.c_str(), partition, &low, &high,
                                         kAdminPatienceMs),
        "offsets of " + topic);
  return high;
}

}  // namespace

std::int64_t end_offset(const std::string& bootstrap, const std::string& topic,
                        std::int32_t partition) {
  return end_of(client(bootstrap), topic, partition);
}

std::int64_t last_stable_offset(const std::string& bootstrap, const std::string& topic,
                                std::int32_t partition) {
  const Client consumer(make_client(
      RD_KAFKA_CONSUMER,
      configuration(bootstrap, {{"group.id", "stable"}, {"isolation.level", "read_committed"}})));
  return end_of(consumer, topic, partition);
}

}  // namespace hapax::support
