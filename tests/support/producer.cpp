#include "support/producer.hpp"

#include <array>
#include <stdexcept>

#include "support/client.hpp"

namespace hapax::support {
namespace {

constexpr int kProducerPatienceMs = 30'000;

struct HeadersDestroyer {
  void operator()(rd_kafka_headers_t* headers) const { rd_kafka_headers_destroy(headers); }
};

std::unique_ptr<rd_kafka_headers_t, HeadersDestroyer> headers_of(const Outgoing& record) {
  std::unique_ptr<rd_kafka_headers_t, HeadersDestroyer> headers(
      rd_kafka_headers_new(record.headers.size()));
  for (const auto& [name, value] : record.headers)
    check(rd_kafka_header_add(headers.get(), name.data(), static_cast<ssize_t>(name.size()),
                              value ? value->data() : nullptr,
                              value ? static_cast<ssize_t>(value->size()) : 0),
          "header " + name);
  return headers;
}

using Memory = decltype(rd_kafka_vu_t{}.u.mem);

Memory memory_of(const std::optional<std::string>& bytes) {
  if (!bytes) return {nullptr, 0};
  return {const_cast<char*>(bytes->data()), bytes->size()};  // only read
}

}  // namespace

void Producer::Destroy::operator()(rd_kafka_t* client) const {
  rd_kafka_purge(client, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  rd_kafka_destroy(client);
}

Producer::Producer(const std::string& bootstrap,
                   const std::map<std::string, std::string>& properties) {
  kafka::ConfHandle conf = configuration(bootstrap, properties);
  rd_kafka_conf_set_dr_msg_cb(conf.get(), on_delivery);
  rd_kafka_conf_set_opaque(conf.get(), &deliveries_);
  client_.reset(make_client(RD_KAFKA_PRODUCER, std::move(conf)));
  if (properties.contains("transactional.id"))
    check(rd_kafka_init_transactions(client_.get(), kProducerPatienceMs), "init_transactions");
}

void Producer::on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
  auto& deliveries = *static_cast<Deliveries*>(opaque);
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
    deliveries.last = {message->partition, message->offset};
  else if (deliveries.failure.empty())
    deliveries.failure = rd_kafka_err2str(message->err);
}

void Producer::produce(const Outgoing& record) {
  for (;;) {
    auto headers = headers_of(record);
    const std::array<rd_kafka_vu_t, 7> fields{{
        {.vtype = RD_KAFKA_VTYPE_TOPIC, .u = {.cstr = record.topic.c_str()}},
        {.vtype = RD_KAFKA_VTYPE_PARTITION, .u = {.i32 = record.partition}},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u = {.i = RD_KAFKA_MSG_F_COPY}},
        {.vtype = RD_KAFKA_VTYPE_KEY, .u = {.mem = memory_of(record.key)}},
        {.vtype = RD_KAFKA_VTYPE_VALUE, .u = {.mem = memory_of(record.payload)}},
        {.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u = {.i64 = record.timestamp_ms}},
        {.vtype = RD_KAFKA_VTYPE_HEADERS, .u = {.headers = headers.get()}},
    }};
    rd_kafka_error_t* error = rd_kafka_produceva(client_.get(), fields.data(), fields.size());
    if (rd_kafka_error_code(error) != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
      check(error, "produce to " + record.topic);
      headers.release();  // librdkafka's now
      rd_kafka_poll(client_.get(), 0);
      return;
    }
    rd_kafka_error_destroy(error);
    rd_kafka_poll(client_.get(), 100);  // returns as soon as one is delivered
  }
}

void Producer::flush(std::chrono::milliseconds timeout) {
  check(rd_kafka_flush(client_.get(), static_cast<int>(timeout.count())),
        "flush, with " + std::to_string(rd_kafka_outq_len(client_.get())) + " records left");
  if (const std::string failure = std::exchange(deliveries_.failure, {}); !failure.empty())
    throw std::runtime_error("not delivered: " + failure);
}

Placed Producer::send(const Outgoing& record) {
  produce(record);
  flush();
  return deliveries_.last;
}

void Producer::begin() { check(rd_kafka_begin_transaction(client_.get()), "begin"); }

void Producer::commit() {
  flush();
  check(rd_kafka_commit_transaction(client_.get(), kProducerPatienceMs), "commit");
}

void Producer::abort() {
  check(rd_kafka_abort_transaction(client_.get(), kProducerPatienceMs), "abort");
  deliveries_.failure.clear();  // what was still queued is purged, on purpose
}

}  // namespace hapax::support
