#include "kafka/ordered_producer.hpp"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <stdexcept>

#include "kafka/conf.hpp"
#include "kafka/produce.hpp"
#include "kafka/producer.hpp"

namespace hapax::kafka {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr int kPollMs = 50;          // ends as soon as the answer is there
constexpr auto kOnceStopped = 1s;    // for an answer that is on its way
constexpr auto kBeyondTimeout = 5s;  // librdkafka's timeout comes first

Delivery::Result delivery_result(rd_kafka_resp_err_t error) {
  switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR: return Delivery::Result::delivered;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE: return Delivery::Result::too_large;
    default: return Delivery::Result::failed;
  }
}

}  // namespace

OrderedProducer::OrderedProducer(const Properties& properties, std::chrono::milliseconds timeout)
    : timeout_(timeout) {
  // The topic decides how large a record may be, not librdkafka's own limit of 1 MB.
  Properties settings = {{"enable.idempotence", "true"},
                         {"message.timeout.ms", std::to_string(timeout.count())},
                         {"message.max.bytes", "1000000000"},
                         {"partitioner", "murmur2_random"},
                         {"linger.ms", "0"}};
  settings.merge(connecting(properties));
  ConfHandle conf = make_conf(settings);
  rd_kafka_conf_set_opaque(conf.get(), this);
  rd_kafka_conf_set_log_cb(conf.get(), nullptr);
  rd_kafka_conf_set_dr_msg_cb(conf.get(), on_delivery);
  rd_kafka_conf_set_error_cb(conf.get(), on_error);
  client_ = make_client(RD_KAFKA_PRODUCER, std::move(conf)).release();
}

OrderedProducer::~OrderedProducer() {
  rd_kafka_purge(client_, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  rd_kafka_destroy(client_);
}

void OrderedProducer::on_delivery(rd_kafka_s*, const rd_kafka_message_s* message, void* opaque) {
  auto& self = *static_cast<OrderedProducer*>(opaque);
  self.answer_ = Delivery{delivery_result(message->err),
                          message->err ? rd_kafka_err2str(message->err) : "", self.last_error_};
}

void OrderedProducer::on_error(rd_kafka_s*, int, const char* reason, void* opaque) {
  static_cast<OrderedProducer*>(opaque)->last_error_ = reason;
}

Delivery OrderedProducer::deliver(const OrderedRecord& record, const std::stop_token& stop) {
  answer_.reset();
  last_error_.clear();
  if (const ErrorHandle error = produce(client_, record, nullptr))
    return {
        delivery_result(rd_kafka_error_code(error.get())), rd_kafka_error_string(error.get()), {}};
  auto until = steady_clock::now() + timeout_ + kBeyondTimeout;
  for (bool stopping = false, purged = false; !answer_;) {
    rd_kafka_poll(client_, kPollMs);
    if (!std::exchange(stopping, stop.stop_requested()) && stopping)
      until = std::min(until, steady_clock::now() + kOnceStopped);
    // A purge answers for every record, as not delivered.
    if (!purged && steady_clock::now() >= until)
      purged = rd_kafka_purge(client_, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT) == 0;
  }
  return *answer_;
}

}  // namespace hapax::kafka
