#include "kafka/admin_client.hpp"

#include <stdexcept>
#include <utility>

#include "kafka/conf.hpp"

namespace hapax::kafka {

ClientHandle make_admin_client(const Properties& properties) {
  ConfHandle conf = make_conf(properties);
  rd_kafka_conf_set_log_cb(conf.get(), nullptr);
  return make_client(RD_KAFKA_CONSUMER, std::move(conf));
}

OptionsHandle admin_options(rd_kafka_t* client, std::chrono::milliseconds timeout) {
  OptionsHandle options(rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_ANY));
  char error[512];
  rd_kafka_AdminOptions_set_request_timeout(options.get(), static_cast<int>(timeout.count()), error,
                                            sizeof error);
  return options;
}

EventHandle admin_answer(rd_kafka_queue_t* queue, std::chrono::milliseconds timeout) {
  EventHandle event(rd_kafka_queue_poll(queue, static_cast<int>(timeout.count())));
  if (!event) throw std::runtime_error("no broker answered in time");
  if (rd_kafka_event_error(event.get()))
    throw std::runtime_error(rd_kafka_event_error_string(event.get()));
  return event;
}

}  // namespace hapax::kafka
