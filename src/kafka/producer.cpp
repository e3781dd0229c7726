#include "kafka/producer.hpp"

#include <librdkafka/rdkafka.h>

#include <iterator>
#include <stdexcept>
#include <utility>

#include "kafka/conf.hpp"
#include "kafka/produce.hpp"

namespace hapax::kafka {
namespace {

constexpr int kPollWhileFullMs = 100;  // ends as soon as one is delivered

std::runtime_error refused(const std::string& what, rd_kafka_resp_err_t error) {
  return std::runtime_error("producing: " + what + ": " + rd_kafka_err2str(error));
}

bool is_about_connecting(std::string_view name) {
  for (const std::string_view prefix :
       {"bootstrap.", "metadata.broker.list", "security.", "sasl.", "enable.sasl.", "ssl.",
        "enable.ssl.", "broker.address.", "socket.", "client.id"})
    if (name.starts_with(prefix)) return true;
  return false;
}

}  // namespace

Properties connecting(const Properties& properties) {
  Properties taken;
  for (const auto& [name, value] : properties)
    if (is_about_connecting(name)) taken.emplace(name, value);
  return taken;
}

std::string cluster_id(rd_kafka_s* client, std::chrono::milliseconds timeout) {
  char* const id = rd_kafka_clusterid(client, static_cast<int>(timeout.count()));
  if (id == nullptr) return "";
  std::string text(id);
  rd_kafka_mem_free(client, id);
  return text;
}

Producer::Producer(const Properties& properties, std::chrono::milliseconds linger) {
  Properties settings = {{"compression.codec", "lz4"},
                         {"linger.ms", std::to_string(linger.count())}};
  settings.merge(connecting(properties));
  ConfHandle conf = make_conf(settings);
  rd_kafka_conf_set_opaque(conf.get(), this);
  rd_kafka_conf_set_dr_msg_cb(conf.get(), on_delivery);
  client_ = make_client(RD_KAFKA_PRODUCER, std::move(conf)).release();
}

Producer::~Producer() {
  rd_kafka_purge(client_, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  rd_kafka_destroy(client_);
}

void Producer::on_delivery(rd_kafka_s*, const rd_kafka_message_s* message, void* opaque) {
  std::string& failure = static_cast<Producer*>(opaque)->failure_;
  if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR && failure.empty())
    failure = rd_kafka_err2str(message->err);
}

void Producer::produce(const Outgoing& record) {
  using Memory = decltype(rd_kafka_vu_t{}.u.mem);
  const auto memory = [](const std::string& bytes) {
    return Memory{const_cast<char*>(bytes.data()), bytes.size()};  // copied, not written
  };
  const rd_kafka_vu_t fields[] = {
      {RD_KAFKA_VTYPE_TOPIC, {.cstr = record.topic.c_str()}},
      {RD_KAFKA_VTYPE_PARTITION, {.i32 = record.partition}},
      {RD_KAFKA_VTYPE_MSGFLAGS, {.i = RD_KAFKA_MSG_F_COPY}},
      {RD_KAFKA_VTYPE_KEY, {.mem = memory(record.key)}},
      {RD_KAFKA_VTYPE_VALUE, {.mem = memory(record.payload)}},
      {RD_KAFKA_VTYPE_HEADER,
       {.header = {record.header_name.c_str(), record.header_value.data(),
                   static_cast<ssize_t>(record.header_value.size())}}}};
  for (;;) {
    const ErrorHandle error(rd_kafka_produceva(client_, fields, std::size(fields)));
    const auto code = error ? rd_kafka_error_code(error.get()) : RD_KAFKA_RESP_ERR_NO_ERROR;
    const bool full = code == RD_KAFKA_RESP_ERR__QUEUE_FULL;
    if (error && !full) throw refused(record.topic, code);
    rd_kafka_poll(client_, full ? kPollWhileFullMs : 0);
    if (!full) return;
  }
}

void Producer::flush(std::chrono::milliseconds timeout) {
  if (const auto error = rd_kafka_flush(client_, static_cast<int>(timeout.count())))
    throw refused("not all delivered", error);
  if (const std::string failure = std::exchange(failure_, {}); !failure.empty())
    throw std::runtime_error("producing: not delivered: " + failure);
}

}  // namespace hapax::kafka
