#include "kafka/transactional_producer.hpp"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "kafka/conf.hpp"
#include "kafka/produce.hpp"
#include "kafka/producer.hpp"
#include "kafka/request.hpp"

namespace hapax::kafka {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr auto kInit = 30s;                   // Kafka may have to end the last transaction first
constexpr auto kAsk = 5s;                     // a question to the brokers
constexpr auto kSlice = 500ms;                // between two looks whether to stop
constexpr auto kLongestSocketTimeout = 300s;  // that librdkafka takes
constexpr std::int32_t kMarkerPartition = 0;

using MetadataHandle =
    std::unique_ptr<const struct rd_kafka_metadata, Destroyer<rd_kafka_metadata_destroy>>;
using TopicHandle = std::unique_ptr<rd_kafka_topic_t, Destroyer<rd_kafka_topic_destroy>>;
using GroupHandle = std::unique_ptr<rd_kafka_consumer_group_metadata_t,
                                    Destroyer<rd_kafka_consumer_group_metadata_destroy>>;

bool is_refusal(rd_kafka_resp_err_t code) {
  switch (code) {
    case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR__UNSUPPORTED_FEATURE: return true;
    default: return stream_answer(0, code).result == StreamAnswer::Result::refused_topic;
  }
}

bool is_no_topic(int code) {
  return stream_answer(0, code).result == StreamAnswer::Result::no_topic;
}

void* id_opaque(std::int64_t id) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(id)); }

ConfHandle transactional_conf(const Properties& connecting,
                              const TransactionalProducer::Setup& to) {
  // The timeouts of records and sockets must not exceed the transaction's.
  const milliseconds socket_timeout =
      std::min<milliseconds>(to.timeout - 1s, kLongestSocketTimeout);
  Properties settings = {{"transactional.id", to.id},
                         {"transaction.timeout.ms", std::to_string(to.timeout.count())},
                         {"message.timeout.ms", std::to_string(to.timeout.count())},
                         {"socket.timeout.ms", std::to_string(socket_timeout.count())},
                         // A topic that was deleted must not come back with other partitions.
                         {"allow.auto.create.topics", "false"},
                         // The topic decides how large a record may be.
                         {"message.max.bytes", "1000000000"},
                         {"batch.size", std::to_string(to.batch_bytes)},
                         {"queue.buffering.max.messages", std::to_string(to.most_records)},
                         {"queue.buffering.max.kbytes", "2097151"},
                         {"linger.ms", "2"}};
  settings.insert(connecting.begin(), connecting.end());
  ConfHandle conf = make_conf(settings);
  rd_kafka_conf_set_log_cb(conf.get(), nullptr);
  return conf;
}

}  // namespace

TransactionalProducer::TransactionalProducer(const Properties& properties, Setup setup)
    : setup_(std::move(setup)),
      reader_(connecting(properties), setup_.topic, setup_.id, setup_.stop) {
  ConfHandle conf = transactional_conf(connecting(properties), setup_);
  rd_kafka_conf_set_opaque(conf.get(), this);
  rd_kafka_conf_set_dr_msg_cb(conf.get(), on_delivery);
  rd_kafka_conf_set_error_cb(conf.get(), on_error);
  client_ = make_client(RD_KAFKA_PRODUCER, std::move(conf)).release();
}

TransactionalProducer::~TransactionalProducer() {
  rd_kafka_purge(client_, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  rd_kafka_destroy(client_);
}

void TransactionalProducer::on_delivery(rd_kafka_s*, const rd_kafka_message_s* message,
                                        void* opaque) {
  auto& self = *static_cast<TransactionalProducer*>(opaque);
  --self.in_hand_;
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    // A broker takes a repeat whose first answer was lost for a duplicate, and may not know any
    // more at which offset. librdkafka then tells that it is there, without an offset.
    if (message->offset < 0) self.ends_are_known_ = false;
    std::int64_t& end = self.ends_[message->partition];
    end = std::max(end, message->offset + 1);
    return;
  }
  self.refuse(reinterpret_cast<std::intptr_t>(message->_private), message->err);
}

void TransactionalProducer::refuse(std::int64_t id, int error) {
  using Result = StreamAnswer::Result;
  StreamAnswer answer = stream_answer(id, error);
  if (answer.result == Result::unsent || answer.result == Result::unknown) {
    if (failure_.empty()) failure_ = answer.error;
    return;
  }
  if (!refusal_) refusal_ = Refusal{answer, 0};
  ++refusal_->records;
  if (answer.id < refusal_->first.id) refusal_->first = std::move(answer);
}

void TransactionalProducer::on_error(rd_kafka_s*, int, const char* reason, void* opaque) {
  static_cast<TransactionalProducer*>(opaque)->last_error_ = reason;
}

void TransactionalProducer::fail(const std::string& doing, int code,
                                 const std::string& words) const {
  throw TransactionError(doing + ": " + words + (last_error_.empty() ? "" : "; " + last_error_),
                         kind_of(code));
}

// A broker that is away has not been slow.
TransactionError::Kind TransactionalProducer::kind_of(int code) const {
  using Kind = TransactionError::Kind;
  if (code == RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT) return Kind::too_long;
  if (is_refusal(static_cast<rd_kafka_resp_err_t>(code))) return Kind::refused;
  if (is_no_topic(code)) return Kind::no_topic;
  const bool took_long = began_at_ && steady_clock::now() - *began_at_ > setup_.timeout / 2;
  const bool is_slow = took_long && !setup_.stop.stop_requested() && reader_.do_answer(ends_);
  return is_slow ? Kind::slow : Kind::failed;
}

// librdkafka goes on with a call that timed out when it is called again.
void TransactionalProducer::attempt(const char* doing, milliseconds limit,
                                    const std::function<rd_kafka_error_s*(int)>& call) const {
  const auto until = steady_clock::now() + limit;
  for (;;) {
    const ErrorHandle error(call(static_cast<int>(milliseconds(kSlice).count())));
    if (!error) return;
    rd_kafka_poll(client_, 0);
    const bool again = rd_kafka_error_is_retriable(error.get()) != 0 &&
                       rd_kafka_error_txn_requires_abort(error.get()) == 0;
    if (!again || setup_.stop.stop_requested() || steady_clock::now() > until)
      fail(doing, rd_kafka_error_code(error.get()), rd_kafka_error_string(error.get()));
  }
}

std::string TransactionalProducer::cluster_id() const {
  for (const auto until = steady_clock::now() + kAsk;;) {
    std::string id = kafka::cluster_id(client_, kSlice);
    rd_kafka_poll(client_, 0);
    if (!id.empty()) return id;
    if (setup_.stop.stop_requested() || steady_clock::now() > until)
      fail("asking for the cluster's id", RD_KAFKA_RESP_ERR__TIMED_OUT, "no broker has told it");
  }
}

void TransactionalProducer::init() {
  attempt("init_transactions", kInit,
          [this](int timeout) { return rd_kafka_init_transactions(client_, timeout); });
}

// A coordinator that is cut off from the other brokers, and does not know it, would tell an older
// marker. No question to Kafka rules that out; docs/outbox.md names the limit.
std::optional<Marker> TransactionalProducer::marker() const {
  const Committed committed = reader_.committed();
  if (!committed.offset) return std::nullopt;
  return Marker{*committed.offset, committed.metadata};
}

void TransactionalProducer::look() {
  const TopicHandle topic(rd_kafka_topic_new(client_, setup_.topic.c_str(), nullptr));
  const struct rd_kafka_metadata* raw = nullptr;
  if (const auto error = rd_kafka_metadata(client_, 0, topic.get(), &raw, timeout_of(kAsk)))
    fail("reading the metadata of topic " + setup_.topic, error, rd_kafka_err2str(error));
  const MetadataHandle metadata(raw);
  const rd_kafka_metadata_topic& found = metadata->topics[0];
  if (found.err != RD_KAFKA_RESP_ERR_NO_ERROR &&
      found.err != RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE)
    fail("topic " + setup_.topic, found.err, stream_answer(0, found.err).error);
  led_.assign(static_cast<std::size_t>(found.partition_cnt), false);
  for (int i = 0; i < found.partition_cnt; ++i)
    if (const auto& partition = found.partitions[i]; partition.leader >= 0)
      led_.at(static_cast<std::size_t>(partition.id)) = true;
}

std::optional<std::int32_t> TransactionalProducer::partition_of(
    const std::optional<std::string>& key) {
  if (led_.empty()) return std::nullopt;  // Kafka is still making the topic
  const auto partitions = static_cast<std::int32_t>(led_.size());
  if (key) {
    const auto partition = rd_kafka_msg_partitioner_murmur2(nullptr, key->data(), key->size(),
                                                            partitions, nullptr, nullptr);
    if (!led_.at(static_cast<std::size_t>(partition))) return std::nullopt;
    return partition;
  }
  for (std::size_t i = 0; i < led_.size(); ++i)
    if (const std::size_t next = ++rotation_ % led_.size(); led_[next])
      return static_cast<std::int32_t>(next);
  return std::nullopt;
}

void TransactionalProducer::begin() {
  ends_.clear();
  ends_are_known_ = true;
  began_at_ = steady_clock::now();
  const ErrorHandle error(rd_kafka_begin_transaction(client_));
  if (error)
    fail("begin_transaction", rd_kafka_error_code(error.get()), rd_kafka_error_string(error.get()));
}

void TransactionalProducer::send(const OutgoingRecord& record, std::int32_t partition,
                                 std::int64_t id) {
  try {
    const ErrorHandle error = produce(client_, record, id_opaque(id), partition);
    if (error) return refuse(id, rd_kafka_error_code(error.get()));
    ++in_hand_;
    ends_.emplace(partition, 0);
  } catch (const std::runtime_error&) {  // a header that no Kafka takes
    refuse(id, RD_KAFKA_RESP_ERR_INVALID_RECORD);
  }
}

std::optional<TransactionalProducer::Refusal> TransactionalProducer::await_answers() {
  while (in_hand_ > 0) {
    if (refusal_ || !failure_.empty() || setup_.stop.stop_requested())
      rd_kafka_purge(client_, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_poll(client_, static_cast<int>(milliseconds(kSlice).count()) / 10);
  }
  if (refusal_) return refusal_;
  if (!failure_.empty()) return refusal_of_transaction();
  if (setup_.stop.stop_requested()) fail("producing", RD_KAFKA_RESP_ERR__FAIL, "stopped");
  return std::nullopt;
}

// If Kafka has refused to take the topic into the transaction, each record only tells that it was
// not sent. librdkafka tells why to the next call, which here cannot take effect in any state.
std::optional<TransactionalProducer::Refusal> TransactionalProducer::refusal_of_transaction()
    const {
  const ErrorHandle why(rd_kafka_begin_transaction(client_));
  const auto code = why ? rd_kafka_error_code(why.get()) : RD_KAFKA_RESP_ERR__STATE;
  if (code == RD_KAFKA_RESP_ERR__STATE) fail("producing", RD_KAFKA_RESP_ERR__FAIL, failure_);
  if (stream_answer(0, code).result == StreamAnswer::Result::refused_topic)
    return Refusal{{0, StreamAnswer::Result::refused_topic, rd_kafka_error_string(why.get())}, 1};
  fail("producing", code, rd_kafka_error_string(why.get()));
}

void TransactionalProducer::mark(const Marker& marker) {
  const GroupHandle group(rd_kafka_consumer_group_metadata_new(setup_.id.c_str()));
  const ListHandle list = new_list();
  rd_kafka_topic_partition_t& entry = add(list, {setup_.topic, kMarkerPartition});
  entry.offset = marker.number;
  entry.metadata_size = marker.token.size();
  entry.metadata = malloc(marker.token.size() + 1);  // librdkafka frees it with the list
  if (entry.metadata == nullptr) throw std::bad_alloc();
  marker.token.copy(static_cast<char*>(entry.metadata), marker.token.size());
  attempt("send_offsets_to_transaction", setup_.timeout, [&](int timeout) {
    return rd_kafka_send_offsets_to_transaction(client_, list.get(), group.get(), timeout);
  });
}

void TransactionalProducer::commit() {
  attempt("commit_transaction", setup_.timeout,
          [this](int timeout) { return rd_kafka_commit_transaction(client_, timeout); });
  began_at_.reset();
}

void TransactionalProducer::await_visible(const Delayed& delayed) {
  if (!ends_are_known_) return await_all_visible(delayed);
  reader_.await_passed(ends_, delayed);
}

void TransactionalProducer::await_all_visible(const Delayed& delayed) {
  // Kafka is still making the topic, or the broker's metadata are old: it may hold anything.
  if (led_.empty())
    throw TransactionError("Kafka tells no partition of topic " + setup_.topic + " yet",
                           TransactionError::Kind::failed);
  const auto partitions = static_cast<std::int32_t>(led_.size());
  reader_.await_passed(reader_.written_ends(partitions, delayed), delayed);
}

}  // namespace hapax::kafka
