#include "kafka/topic_admin.hpp"

#include <stdexcept>

#include "kafka/admin_client.hpp"

namespace hapax::kafka {
namespace {

using NewTopic = std::unique_ptr<rd_kafka_NewTopic_t, Destroyer<rd_kafka_NewTopic_destroy>>;
using OldTopic = std::unique_ptr<rd_kafka_DeleteTopic_t, Destroyer<rd_kafka_DeleteTopic_destroy>>;
using OldGroup = std::unique_ptr<rd_kafka_DeleteGroup_t, Destroyer<rd_kafka_DeleteGroup_destroy>>;

void check_topic(const rd_kafka_topic_result_t* result) {
  if (rd_kafka_topic_result_error(result) == RD_KAFKA_RESP_ERR_NO_ERROR) return;
  const char* const text = rd_kafka_topic_result_error_string(result);
  throw std::runtime_error(
      std::string("topic ") + rd_kafka_topic_result_name(result) + ": " +
      (text != nullptr ? text : rd_kafka_err2str(rd_kafka_topic_result_error(result))));
}

// The broker answers when the topic is made or gone in all of it, not only in the controller.
OptionsHandle until_done(rd_kafka_t* client, std::chrono::milliseconds timeout) {
  OptionsHandle options = admin_options(client, timeout);
  char error[512];
  rd_kafka_AdminOptions_set_operation_timeout(options.get(), static_cast<int>(timeout.count() / 2),
                                              error, sizeof error);
  return options;
}

}  // namespace

void create_topic(const Properties& properties, const std::string& name, int partitions,
                  std::chrono::milliseconds timeout) {
  const ClientHandle client = make_admin_client(properties);
  const QueueHandle queue(rd_kafka_queue_new(client.get()));
  char error[512];
  const NewTopic topic(rd_kafka_NewTopic_new(name.c_str(), partitions, -1, error, sizeof error));
  if (!topic) throw std::runtime_error(error);
  rd_kafka_NewTopic_t* topics[] = {topic.get()};
  rd_kafka_CreateTopics(client.get(), topics, 1, until_done(client.get(), timeout).get(),
                        queue.get());
  const EventHandle event = admin_answer(queue.get(), timeout);
  std::size_t count = 0;
  check_topic(rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event.get()),
                                                  &count)[0]);
}

void delete_topic(const Properties& properties, const std::string& name,
                  std::chrono::milliseconds timeout) {
  const ClientHandle client = make_admin_client(properties);
  const QueueHandle queue(rd_kafka_queue_new(client.get()));
  const OldTopic topic(rd_kafka_DeleteTopic_new(name.c_str()));
  rd_kafka_DeleteTopic_t* topics[] = {topic.get()};
  rd_kafka_DeleteTopics(client.get(), topics, 1, until_done(client.get(), timeout).get(),
                        queue.get());
  const EventHandle event = admin_answer(queue.get(), timeout);
  std::size_t count = 0;
  check_topic(rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event.get()),
                                                  &count)[0]);
}

void delete_groups(const Properties& properties, const std::vector<std::string>& groups,
                   std::chrono::milliseconds timeout) {
  const ClientHandle client = make_admin_client(properties);
  const QueueHandle queue(rd_kafka_queue_new(client.get()));
  std::vector<OldGroup> owned;
  std::vector<rd_kafka_DeleteGroup_t*> list;
  for (const std::string& group : groups)
    list.push_back(owned.emplace_back(rd_kafka_DeleteGroup_new(group.c_str())).get());
  if (list.empty()) return;
  rd_kafka_DeleteGroups(client.get(), list.data(), list.size(),
                        admin_options(client.get(), timeout).get(), queue.get());
  const EventHandle event = admin_answer(queue.get(), timeout);
  std::size_t count = 0;
  const auto results =
      rd_kafka_DeleteGroups_result_groups(rd_kafka_event_DeleteGroups_result(event.get()), &count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto* const error = rd_kafka_group_result_error(results[i]);
    if (error != nullptr && rd_kafka_error_code(error) != RD_KAFKA_RESP_ERR_GROUP_ID_NOT_FOUND)
      throw std::runtime_error(std::string("group ") + rd_kafka_group_result_name(results[i]) +
                               ": " + rd_kafka_error_string(error));
  }
}

}  // namespace hapax::kafka
