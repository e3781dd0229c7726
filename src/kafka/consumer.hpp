// A member of a consumer group, on librdkafka's C API.
//
// Owned by the poll thread. Only functions that are marked "any thread" may be called by others.
// Callbacks of Listener run on the poll thread, too, inside poll() or close().
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kafka/consumer_interface.hpp"
#include "kafka/record.hpp"
#include "sync/mutex.hpp"

struct rd_kafka_s;
struct rd_kafka_queue_s;
struct rd_kafka_topic_partition_list_s;

namespace hapax::kafka {

using Properties = std::map<std::string, std::string>;

// What the group has committed for a partition. `offset` is empty if there is none.
struct Committed {
  std::optional<std::int64_t> offset;
  std::string metadata;
};

struct OffsetRange {
  std::int64_t low = 0;   // the oldest offset in the log
  std::int64_t high = 0;  // one more than the newest
};

struct EndOfPartition {
  TopicPartition partition;
  std::int64_t offset = 0;  // one more than the last one, control records included
};

// The consumer cannot go on with a partition.
struct PartitionError {
  enum class Kind { out_of_range, unreadable, unreadable_headers, gone, refused };
  Kind kind;
  TopicPartition partition;  // -1: all of the topic; no topic: the group
  std::int64_t offset = -1;  // -1: none
  std::string name;          // librdkafka's, such as _BAD_MSG
  std::string text;
};

struct ClientError {
  bool fatal = false;
  std::string name;
  std::string text;
  bool may_pass = false;  // librdkafka tries the next address of the broker's name
};

using Event = std::variant<std::monostate, std::unique_ptr<Record>, EndOfPartition, PartitionError,
                           ClientError>;

// Whether this librdkafka can ask for the ids of topics (2.3 or newer).
bool can_tell_topic_ids();
// Whether a process must not go on with this librdkafka once a topic that it read was made again.
bool is_broken_by_another_topic_id();

struct Members {
  std::string state;  // Kafka's word: Stable, PreparingRebalance, CompletingRebalance, Empty, Dead
  std::size_t count = 0;
  std::set<TopicPartition> partitions;  // that any of them has
};

// As the cluster names it in its metadata: by advertised.listeners.
struct Broker {
  std::int32_t id = 0;
  std::string address;  // host:port
};

struct TopicSettings;  // topic_settings.hpp

class Listener {
 public:
  // The group gave us these. Nothing is fetched of a partition until start() is called for it.
  virtual void on_assigned(const std::vector<TopicPartition>& partitions) = 0;
  // The group takes these away. `lost`: another member may have them already, so it is too late to
  // commit. When this returns, they are gone. Blocks the group's rebalance while it runs.
  virtual void on_revoked(const std::vector<TopicPartition>& partitions, bool lost) = 0;
  virtual void on_committed(const std::vector<Commit>& commits, CommitResult result,
                            const std::string& error) = 0;
  virtual void on_client_error(const ClientError& error) = 0;

 protected:
  ~Listener() = default;
};

// Throws: std::runtime_error with a line for each property that librdkafka does not take for a
// Consumer, or whose file cannot be read. Blocks: on the file system.
void check_properties(const Properties& properties);

class Consumer final : public ConsumerInterface {
 public:
  // `properties`: librdkafka's names. The constructor adds those that hapax's promise needs.
  // Throws: std::runtime_error naming the property that librdkafka refuses.
  Consumer(const Properties& properties, Listener& listener);
  // If close() was not called, ends without leaving the group. Blocks: at most seconds.
  ~Consumer();
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  void subscribe(const std::vector<std::string>& topics);

  // Blocks: at most `timeout`. Throws: what a callback of the listener threw.
  Event poll(std::chrono::milliseconds timeout);

  // Without a group: fetches exactly these, from these offsets. Throws: std::runtime_error.
  void assign(const std::vector<Position>& positions);

  void rejoin() override;
  std::vector<TopicPartition> start(const std::vector<Position>& positions) override;
  std::vector<TopicPartition> restart(const std::vector<Position>& positions) override;
  void pause(const std::vector<TopicPartition>& partitions) override;
  void resume(const TopicPartition& partition) override;
  bool commit(const std::vector<Commit>& commits) override;
  bool commits() const override { return !in_flight_.empty(); }
  std::map<TopicPartition, std::string> commit_and_wait(const std::vector<Commit>& commits,
                                                        std::chrono::milliseconds timeout) override;
  void set_credentials(const std::string& user, const std::string& password) override;
  int partition_count(const std::string& topic, std::chrono::milliseconds timeout) const override;
  std::optional<std::int64_t> known_end(const TopicPartition& partition) const override;

  // Any thread. Throws: std::runtime_error. Blocks: at most `timeout`. Leaves out partitions for
  // which Kafka returns an error, such as a topic that we may not read. `refusals` gets its words.
  std::map<TopicPartition, Committed> committed(
      const std::vector<TopicPartition>& partitions, std::chrono::milliseconds timeout,
      std::map<TopicPartition, std::string>* refusals = nullptr) const;
  // The first offset whose message is not older than `since` (milliseconds since 1970); if there is
  // none, one more than the newest.
  std::int64_t offset_at(const TopicPartition& partition, std::int64_t since,
                         std::chrono::milliseconds timeout) const;
  // The same for many partitions, with one request to each broker. Leaves out those that Kafka does
  // not tell.
  std::map<TopicPartition, std::int64_t> offsets_at(const std::vector<TopicPartition>& partitions,
                                                    std::int64_t since,
                                                    std::chrono::milliseconds timeout) const;
  OffsetRange range(const TopicPartition& partition, std::chrono::milliseconds timeout) const;
  // The ranges of many partitions, see offsets_at().
  std::map<TopicPartition, OffsetRange> ranges(const std::vector<TopicPartition>& partitions,
                                               std::chrono::milliseconds timeout) const;
  // The same, but only the ends: one more than the newest offset.
  std::map<TopicPartition, std::int64_t> ends(const std::vector<TopicPartition>& partitions,
                                              std::chrono::milliseconds timeout) const;
  std::string cluster_id(std::chrono::milliseconds timeout) const;
  // The cluster's brokers, and those of them that do not answer at the addresses that they
  // advertise. All are asked at once. Any thread.
  // Throws: std::runtime_error. Blocks: at most twice `timeout`.
  struct Brokers {
    std::size_t count = 0;
    std::vector<Broker> silent;
  };
  Brokers ask_brokers(std::chrono::milliseconds timeout) const;
  // The members of the group, and the partitions that they have. Any thread.
  // Throws: std::runtime_error. Blocks: at most `timeout`.
  Members members(const std::string& group, std::chrono::milliseconds timeout) const;
  // Which partitions the group's members have; nothing if the group is not stable. Any thread.
  // Throws: std::runtime_error. Blocks: at most `timeout`.
  std::optional<std::set<TopicPartition>> assigned_in_group(
      const std::string& group, std::chrono::milliseconds timeout) const;
  // The topic's id; empty if this librdkafka or the cluster cannot tell. Any thread.
  // Throws: std::runtime_error if they could tell and fail. Blocks: at most twice `timeout`.
  std::string topic_id(const std::string& topic, std::chrono::milliseconds timeout) const;

  // As read_topic_settings(), by this client, which is connected already. Any thread.
  // Throws: std::runtime_error with the reason. Blocks: at most `timeout`.
  TopicSettings topic_settings(const std::string& topic, std::chrono::milliseconds timeout) const;

  // Leaves the group. False if the brokers did not answer in time.
  // Blocks: at most `timeout`.
  bool close(std::chrono::milliseconds timeout);

  static std::string version();

 private:
  struct Callbacks;
  void poll_commits();
  void wake_fetchers();
  void hold(rd_kafka_topic_partition_list_s* partitions);
  void await_stopped();
  void unassign();
  void rethrow();
  std::string explained(int error, const std::string& text);
  bool may_pass(const std::string& text);

  Listener& listener_;
  rd_kafka_s* client_ = nullptr;
  rd_kafka_queue_s* commits_ = nullptr;
  std::vector<Commit> in_flight_;  // sent and not yet answered
  bool closed_ = false;
  bool joined_ = false;  // the group, once: the settings are right
  std::set<TopicPartition> assigned_;
  std::set<TopicPartition> fetched_;  // of these, those that are not paused
  std::size_t unwoken_ = 0;           // bytes received since the fetching threads were last woken
  std::exception_ptr thrown_;
  std::string mechanism_;  // sasl.mechanism, or ""
  sync::Mutex causes_mutex_;
  // The brokers of which an IPv6 address did not connect, and when that was first told.
  std::map<std::string, std::chrono::steady_clock::time_point> next_addresses_
      HAPAX_GUARDED_BY(causes_mutex_);
  std::string certificate_mistake_ HAPAX_GUARDED_BY(causes_mutex_);  // what OpenSSL last refused
  std::string failure_ HAPAX_GUARDED_BY(causes_mutex_);              // why a connection last failed
};

}  // namespace hapax::kafka
