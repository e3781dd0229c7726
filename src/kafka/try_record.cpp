#include "kafka/try_record.hpp"

#include <optional>
#include <utility>

#include "kafka/conf.hpp"
#include "kafka/produce.hpp"
#include "kafka/producer.hpp"

namespace hapax::kafka {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr int kPollMs = 50;          // ends as soon as the answer is there
constexpr auto kBeyondTimeout = 5s;  // librdkafka's timeout comes first

TriedRecord answer_of(rd_kafka_resp_err_t error) {
  using Result = TriedRecord::Result;
  switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR: return {Result::delivered, ""};
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE: return {Result::too_large, rd_kafka_err2str(error)};
    default: return {Result::failed, rd_kafka_err2str(error)};
  }
}

void on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
  *static_cast<std::optional<TriedRecord>*>(opaque) = answer_of(message->err);
}

}  // namespace

TriedRecord try_record(const Properties& properties, const OutgoingRecord& record,
                       std::chrono::milliseconds timeout) {
  // The topic decides how large a record may be, not librdkafka's own limit of 1 MB.
  Properties settings = {{"enable.idempotence", "true"},
                         {"message.timeout.ms", std::to_string(timeout.count())},
                         {"message.max.bytes", "1000000000"},
                         {"partitioner", "murmur2_random"},
                         {"linger.ms", "0"}};
  settings.merge(connecting(properties));
  std::optional<TriedRecord> answer;  // before the client, which writes it
  ConfHandle conf = make_conf(settings);
  rd_kafka_conf_set_opaque(conf.get(), &answer);
  rd_kafka_conf_set_log_cb(conf.get(), nullptr);
  rd_kafka_conf_set_dr_msg_cb(conf.get(), on_delivery);
  rd_kafka_conf_set_error_cb(conf.get(), [](rd_kafka_t*, int, const char*, void*) {});
  const ClientHandle client = make_client(RD_KAFKA_PRODUCER, std::move(conf));
  if (const ErrorHandle error = produce(client.get(), record, nullptr))
    return answer_of(rd_kafka_error_code(error.get()));
  const auto until = steady_clock::now() + timeout + kBeyondTimeout;
  while (!answer && steady_clock::now() < until) rd_kafka_poll(client.get(), kPollMs);
  rd_kafka_purge(client.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  return answer.value_or(TriedRecord{TriedRecord::Result::failed, "Kafka has not answered"});
}

}  // namespace hapax::kafka
