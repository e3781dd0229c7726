// A real Apache Kafka for the tests: one broker that is its own controller (KRaft), on 127.0.0.1.
//
// It runs from the jars that get_kafka.sh fetched. Ready in about three seconds.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/child_process.hpp"
#include "sandbox/temporary_folder.hpp"

namespace hapax::support {

// Throws: std::runtime_error with the broker's own words if it does not start or stop.
// Thread safety: none; start it from a thread that outlives it (see ChildProcess).
class KafkaServer {
 public:
  // `settings`: as in server.properties, beside and over ours; `listeners` and
  // `listener.security.protocol.map` are added to ours. `format`: arguments for kafka-storage.
  // Blocks: seconds; at most two minutes.
  explicit KafkaServer(const std::map<std::string, std::string>& settings = {},
                       const std::vector<std::string>& format = {});
  KafkaServer(const KafkaServer&) = delete;
  KafkaServer& operator=(const KafkaServer&) = delete;

  // What this machine lacks to run Kafka, and how to get it; nothing if nothing is missing.
  static std::optional<std::string> missing();

  // Starts it again after stop() or kill(), on the same ports and data. Returns when it serves.
  // Blocks: at most a minute.
  void start();

  void stop();  // cleanly. Blocks: at most a minute
  void kill();  // SIGKILL; returns when it is gone

  // While it is stopped: what it holds of a partition is gone, as with a lost disk.
  void lose_log(const std::string& topic, std::int32_t partition) const;

  // Other settings for the next start().
  void write_settings(const std::map<std::string, std::string>& settings) const;

  // As kafka-configs does: a user's password for SCRAM, also while the server runs.
  void set_scram_password(const std::string& user, const std::string& password) const;

  // SIGSTOP: connections stay, nothing answers. Only thaw(), kill() and the destructor may follow.
  void freeze();
  void thaw();

  // For `bootstrap.servers`.
  std::string bootstrap() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  sandbox::Program java(const std::string& main_class, std::vector<std::string> arguments) const;
  [[noreturn]] void fail(const std::string& what) const;

  std::uint16_t port_;
  std::uint16_t controller_port_;
  sandbox::TemporaryFolder folder_;
  std::unique_ptr<sandbox::ChildProcess> process_;
};

// Whether a test that cannot have Kafka fails instead of being skipped: CI or HAPAX_REQUIRE_KAFKA
// is in the environment.
bool kafka_is_required();

}  // namespace hapax::support

// First line of a test that needs Kafka.
#define HAPAX_NEEDS_KAFKA()                                          \
  if (const auto missing = hapax::support::KafkaServer::missing()) { \
    if (hapax::support::kafka_is_required()) FAIL() << *missing;     \
    GTEST_SKIP() << "NOT TESTED without a real Kafka: " << *missing; \
  }                                                                  \
  static_assert(true)
