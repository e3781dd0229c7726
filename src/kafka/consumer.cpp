#include "kafka/consumer.hpp"

#include <librdkafka/rdkafka.h>

#include <stdexcept>

#include "kafka/client_error.hpp"
#include "kafka/conf.hpp"
#include "kafka/failure.hpp"
#include "kafka/handles.hpp"
#include "kafka/request.hpp"
#include "observe/log.hpp"

namespace hapax::kafka {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Before this version, if its queue was full, librdkafka looks only once a second for room in it.
constexpr int kLooksForRoomByItself = 0x02020000;

// So many bytes must come before hapax makes librdkafka look again. Fewer cannot have filled the
// queue.
constexpr std::size_t kBulk = 1U << 20;
constexpr std::size_t kLeastOfAMessage = 1024;

// librdkafka tries each second. It may take the address that failed more than once.
constexpr milliseconds kNextAddress{5000};

ConfHandle configure(Properties properties) {
  // insert() changes no property that the user has set. hapax's promise needs the first rows, and
  // the loader refuses other values for them.
  properties.insert({
      {"enable.auto.commit", "false"},
      {"enable.auto.offset.store", "false"},
      {"auto.offset.reset", "error"},
      {"allow.auto.create.topics", "false"},
      {"check.crcs", "true"},
      {"enable.partition.eof", "true"},
      {"isolation.level", "read_committed"},
      {"partition.assignment.strategy", "range,roundrobin"},
      {"client.id", "hapax"},
      {"queued.max.messages.kbytes", "16384"},
      {"topic.metadata.refresh.interval.ms", "30000"},  // a new partition waits for that refresh
  });
  return make_conf(properties, {{"fetch.queue.backoff.ms", "50"}});
}

ListHandle list_of(const std::vector<Commit>& commits) {
  ListHandle list = new_list(commits.size());
  for (const Commit& commit : commits) {
    rd_kafka_topic_partition_t& entry = add(list, commit.partition);
    entry.offset = commit.offset;
#if RD_KAFKA_VERSION >= 0x02010000
    if (commit.leader_epoch >= 0)
      rd_kafka_topic_partition_set_leader_epoch(&entry, commit.leader_epoch);
#endif
    entry.metadata_size = commit.metadata.size();
    // librdkafka frees it with the list.
    entry.metadata = malloc(commit.metadata.size() + 1);
    if (entry.metadata == nullptr) throw std::bad_alloc();
    commit.metadata.copy(static_cast<char*>(entry.metadata), commit.metadata.size());
  }
  return list;
}

// The first error in an answer: of the request, or of a partition.
rd_kafka_resp_err_t error_in(rd_kafka_event_t& event) {
  if (const auto error = rd_kafka_event_error(&event)) return error;
  const rd_kafka_topic_partition_list_t* list = rd_kafka_event_topic_partition_list(&event);
  for (int i = 0; list != nullptr && i < list->cnt; ++i)
    if (list->elems[i].err != RD_KAFKA_RESP_ERR_NO_ERROR) return list->elems[i].err;
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

CommitResult commit_result(rd_kafka_resp_err_t error) {
  switch (meaning_of_commit(error)) {
    case CommitMeaning::done: return CommitResult::done;
    case CommitMeaning::dropped: return CommitResult::dropped;
    case CommitMeaning::later: return CommitResult::later;
    case CommitMeaning::fatal: return CommitResult::fatal;
  }
  return CommitResult::later;
}

Event event_of_error(const rd_kafka_message_t& message) {
  using Kind = PartitionError::Kind;
  const char* const topic = message.rkt != nullptr ? rd_kafka_topic_name(message.rkt) : "";
  const std::string name = rd_kafka_err2name(message.err);
  const std::string text = rd_kafka_message_errstr(&message);
  const TopicPartition partition(topic, message.partition);
  switch (meaning_of_consumer_error(message.err)) {
    case ConsumerMeaning::out_of_range:
      return PartitionError{Kind::out_of_range, partition, message.offset, name, text};
    case ConsumerMeaning::unreadable:
      return PartitionError{Kind::unreadable, partition, message.offset, name, text};
    case ConsumerMeaning::gone: return PartitionError{Kind::gone, partition, -1, name, text};
    case ConsumerMeaning::refused: return PartitionError{Kind::refused, partition, -1, name, text};
    case ConsumerMeaning::fatal: return ClientError{true, name, text};
    case ConsumerMeaning::information: break;
  }
  // librdkafka's own errors at an offset must not be passed over, because librdkafka goes on after
  // that offset. After a broker's error it asks for the same offset again.
  if (message.partition >= 0 && message.offset >= 0 && message.err < RD_KAFKA_RESP_ERR__END)
    return PartitionError{Kind::unreadable, partition, message.offset, name, text};
  return ClientError{false, name, text};
}

}  // namespace

// No exception may pass through librdkafka's C frames. So it is kept here, and poll() throws it
// again.
struct Consumer::Callbacks {
  static void rebalance(rd_kafka_t* client, rd_kafka_resp_err_t what,
                        rd_kafka_topic_partition_list_t* list, void* opaque) {
    auto& self = *static_cast<Consumer*>(opaque);
    try {
      if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        self.hold(list);
        self.joined_ = true;
        self.listener_.on_assigned(partitions_of(list));
      } else {
        const bool lost = rd_kafka_assignment_lost(client) != 0;
        self.listener_.on_revoked(partitions_of(list), lost);
        self.unassign();
      }
    } catch (...) {
      self.thrown_ = std::current_exception();
      self.unassign();
    }
  }

  static void error(rd_kafka_t* client, int code, const char* reason, void* opaque) {
    auto& self = *static_cast<Consumer*>(opaque);
    const auto error = static_cast<rd_kafka_resp_err_t>(code);
    char text[512] = "";
    std::string why = reason;
    rd_kafka_resp_err_t named = error;
    if (error == RD_KAFKA_RESP_ERR__FATAL) {
      named = rd_kafka_fatal_error(client, text, sizeof text);
      why = text;
    }
    if (is_plain_disconnect(error, why)) return;
    try {
      self.listener_.on_client_error({error == RD_KAFKA_RESP_ERR__FATAL, rd_kafka_err2name(named),
                                      self.explained(named, why), self.may_pass(why)});
    } catch (...) {
      self.thrown_ = std::current_exception();
    }
  }

  // Called by librdkafka's own threads, as the next one. OpenSSL's verdict stands: this returns 1
  // only if OpenSSL found no error.
  static int certificate(rd_kafka_t*, const char*, std::int32_t, int* x509_error, int, const char*,
                         std::size_t, char* why, std::size_t size, void* opaque) {
    if (*x509_error == 0) return 1;
    auto& self = *static_cast<Consumer*>(opaque);
    const std::string mistake = certificate_mistake(*x509_error);
    std::snprintf(why, size, "%s", mistake.c_str());
    const sync::Lock lock(self.causes_mutex_);
    self.certificate_mistake_ = mistake;
    return 0;
  }

  static void log(const rd_kafka_t* client, int level, const char* facility, const char* text) {
    bool passes = false;
    if (std::string_view(facility) == "FAIL") {
      auto& self = *static_cast<Consumer*>(rd_kafka_opaque(client));
      passes = self.may_pass(text);
      const sync::Lock lock(self.causes_mutex_);
      self.failure_ = failure_in_log(text);
    }
    if (level <= 3 && !passes) {
      observe::log::warning("librdkafka", {{"facility", facility}}, text);
    } else {
      observe::log::debug("librdkafka", {{"facility", facility}}, text);
    }
  }
};

void check_properties(const Properties& properties) { configure(properties); }

Consumer::Consumer(const Properties& properties, Listener& listener) : listener_(listener) {
  for (const char* const name : {"sasl.mechanisms", "sasl.mechanism"})
    if (const auto found = properties.find(name); found != properties.end())
      mechanism_ = found->second;
  ConfHandle conf = configure(properties);
  rd_kafka_conf_set_opaque(conf.get(), this);
  rd_kafka_conf_set_rebalance_cb(conf.get(), Callbacks::rebalance);
  rd_kafka_conf_set_error_cb(conf.get(), Callbacks::error);
  rd_kafka_conf_set_log_cb(conf.get(), Callbacks::log);
  rd_kafka_conf_set_ssl_cert_verify_cb(conf.get(), Callbacks::certificate);
  client_ = make_client(RD_KAFKA_CONSUMER, std::move(conf)).release();
  rd_kafka_poll_set_consumer(client_);
  commits_ = rd_kafka_queue_new(client_);
}

Consumer::~Consumer() {
  if (commits_ != nullptr) rd_kafka_queue_destroy(commits_);
  if (client_ != nullptr) rd_kafka_destroy_flags(client_, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

// Whether the failure may pass by itself, because librdkafka tries the next address of the name. A
// failure that is told later is no first try.
bool Consumer::may_pass(const std::string& text) {
  const std::string broker = broker_with_next_address(text);
  if (broker.empty()) return false;
  const auto now = steady_clock::now();
  const sync::Lock lock(causes_mutex_);
  return now - next_addresses_.emplace(broker, now).first->second < kNextAddress;
}

std::string Consumer::explained(int error, const std::string& text) {
  const sync::Lock lock(causes_mutex_);
  // That all brokers are down follows from another error. Newer versions write that error to their
  // log only.
  const bool down = error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN;
  const std::string& cause =
      down && !failure_.empty() && !is_plain_disconnect(RD_KAFKA_RESP_ERR__TRANSPORT, failure_)
          ? failure_
          : text;
  return explain(static_cast<rd_kafka_resp_err_t>(error), cause, certificate_mistake_, mechanism_,
                 joined_);
}

void Consumer::set_credentials(const std::string& user, const std::string& password) {
  const ErrorHandle error(rd_kafka_sasl_set_credentials(client_, user.c_str(), password.c_str()));
  if (error) throw std::runtime_error(rd_kafka_error_string(error.get()));
}

void Consumer::subscribe(const std::vector<std::string>& topics) {
  const ListHandle list = new_list(topics.size());
  for (const std::string& topic : topics)
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), RD_KAFKA_PARTITION_UA);
  if (const auto error = rd_kafka_subscribe(client_, list.get()))
    throw error_of("cannot subscribe", error);
}

void Consumer::rejoin() {
  rd_kafka_topic_partition_list_t* subscribed = nullptr;
  if (const auto error = rd_kafka_subscription(client_, &subscribed))
    throw error_of("cannot read the subscription", error);
  const ListHandle list(subscribed);
  rd_kafka_unsubscribe(client_);  // subscribing alone would not leave
  if (const auto error = rd_kafka_subscribe(client_, list.get()))
    throw error_of("cannot subscribe", error);
}

Event Consumer::poll(milliseconds timeout) {
  if (!in_flight_.empty()) poll_commits();
  const bool may_sleep = unwoken_ >= kBulk && rd_kafka_version() < kLooksForRoomByItself;
  MessageHandle message(rd_kafka_consumer_poll(client_, may_sleep ? 0 : timeout_of(timeout)));
  rethrow();
  if (may_sleep && !message) {
    wake_fetchers();
    message.reset(rd_kafka_consumer_poll(client_, timeout_of(timeout)));
    rethrow();
  }
  if (!message) return std::monostate{};
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    unwoken_ += std::max(message->len, kLeastOfAMessage);
    if (auto record = Record::copy(*message)) return record;
    return PartitionError{PartitionError::Kind::unreadable_headers,
                          {rd_kafka_topic_name(message->rkt), message->partition},
                          message->offset,
                          "_BAD_MSG",
                          "there are more than 100,000 of them, or they are damaged"};
  }
  if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
    return EndOfPartition{{rd_kafka_topic_name(message->rkt), message->partition}, message->offset};
  return event_of_error(*message);
}

void Consumer::rethrow() {
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

bool Consumer::commit(const std::vector<Commit>& commits) {
  if (!in_flight_.empty() || commits.empty()) return false;
  const ListHandle list = list_of(commits);
  const auto error = rd_kafka_commit_queue(client_, list.get(), commits_, nullptr, nullptr);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    listener_.on_committed(commits, commit_result(error), rd_kafka_err2str(error));
    return true;
  }
  in_flight_ = commits;
  return true;
}

void Consumer::poll_commits() {
  while (const EventHandle event{rd_kafka_queue_poll(commits_, 0)}) {
    if (rd_kafka_event_type(event.get()) != RD_KAFKA_EVENT_OFFSET_COMMIT) continue;
    const std::vector<Commit> answered = std::exchange(in_flight_, {});
    const auto error = error_in(*event);
    listener_.on_committed(answered, commit_result(error), rd_kafka_err2str(error));
  }
}

std::map<TopicPartition, std::string> Consumer::commit_and_wait(const std::vector<Commit>& commits,
                                                                milliseconds timeout) {
  const QueueHandle queue(rd_kafka_queue_new(client_));
  const ListHandle list = list_of(commits);
  if (const auto error = rd_kafka_commit_queue(client_, list.get(), queue.get(), nullptr, nullptr))
    throw error_of("offset commit", error);
  const EventHandle event(rd_kafka_queue_poll(queue.get(), timeout_of(timeout)));
  if (!event) throw std::runtime_error("offset commit: no answer from the brokers");
  std::map<TopicPartition, std::string> refused;
  const rd_kafka_topic_partition_list_t* answers = rd_kafka_event_topic_partition_list(event.get());
  for (int i = 0; answers != nullptr && i < answers->cnt; ++i)
    if (const auto& answer = answers->elems[i]; answer.err != RD_KAFKA_RESP_ERR_NO_ERROR)
      refused.emplace(TopicPartition(answer.topic, answer.partition), rd_kafka_err2str(answer.err));
  if (const auto error = rd_kafka_event_error(event.get()); error && refused.empty())
    throw error_of("offset commit", error);
  return refused;
}

bool Consumer::close(milliseconds timeout) {
  if (closed_) return true;
  closed_ = true;
  const auto deadline = steady_clock::now() + timeout;
  const QueueHandle queue(rd_kafka_queue_new(client_));
  if (rd_kafka_error_t* error = rd_kafka_consumer_close_queue(client_, queue.get())) {
    rd_kafka_error_destroy(error);
    return false;
  }
  while (rd_kafka_consumer_closed(client_) == 0) {
    if (steady_clock::now() >= deadline) return false;
    const EventHandle event(rd_kafka_queue_poll(queue.get(), 50));
    if (event && rd_kafka_event_type(event.get()) == RD_KAFKA_EVENT_REBALANCE) unassign();
  }
  return true;
}

std::string Consumer::version() { return rd_kafka_version_str(); }

}  // namespace hapax::kafka
