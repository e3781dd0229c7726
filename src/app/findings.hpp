// What `hapax check` finds: one line a check, all of them even after one failed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "config/gate.hpp"
#include "store/session.hpp"

namespace hapax::app {

class KafkaReader;

enum class Severity { ok, warn, fail };

struct Finding {
  Severity severity;
  std::string what;   // what was checked
  std::string found;  // what was found, or "cannot tell: why"
  std::string fix;    // how to fix it; empty if all is well
};

class Findings {
 public:
  void ok(std::string what, std::string found);
  void warn(std::string what, std::string found, std::string fix);
  void fail(std::string what, std::string found, std::string fix);
  // fail if `good` is false.
  void judge(bool good, std::string what, std::string found, std::string fix);

  // Runs a check; what it throws is its failure, each line of several one of its own.
  void attempt(const std::string& what, const std::string& fix, const std::function<void()>& check);

  const std::vector<Finding>& all() const { return all_; }
  bool any_failed() const;
  // Whether `hapax run` would end for one of them with exit code 3.
  bool has_wrong_configuration() const { return has_wrong_configuration_; }

 private:
  std::vector<Finding> all_;
  bool has_wrong_configuration_ = false;
};

// The two sides. `gate`: null for a worker. Block: a bounded time for each question.
void check_kafka(const config::Config& config, Findings& findings,
                 const config::Gate* gate = nullptr);
void check_postgres(const config::Config& config, Findings& findings,
                    const config::Gate* gate = nullptr);
// Whether handlers' tables are logged; whether those that routes declare are there, with their
// rights.
void check_handlers_tables(const config::Config& config, store::Session& session,
                           Findings& findings);
// Whether the triggers of hapax's tables are there and enabled.
void check_triggers(store::Session& session, Findings& findings);
// Whether calls are open in scopes that do not call. They halt their messages' partitions,
// `open_call`.
void check_calls(const config::Config& config, store::Session& session, Findings& findings);
void check_dead_letter_topics(const config::Config& config, const KafkaReader& reader,
                              Findings& findings);
// Whether the group's partitions would start, or halt because Kafka's offsets and the database's
// checkpoints contradict each other. Looks at none that is halted.
void check_starts(const config::Config& config, const KafkaReader& reader,
                  const std::string& cluster_id, Findings& findings);
void check_publish_topics(const config::Config& config, const KafkaReader& reader,
                          Findings& findings, const config::Gate* gate);

// Whether the collector takes spans, if there shall be any. Sends none. Blocks: some seconds at
// most.
void check_traces(const config::Config& config, Findings& findings);

// Whether the user of kafka.* may write to the topic, which takes records of `limit` bytes. Writes
// nothing. Blocks: at most kKafkaTimeout.
void check_may_write(const config::Config& config, const std::string& topic, std::int64_t limit,
                     const char* fix, Findings& findings);

// The same for Kafka's transactions. Tells what consumers need. Blocks: half a minute at most.
void check_transactions(const config::Config& config, const std::string& topic, Findings& findings);

// Whether Kafka keeps the markers of batches for a day. Tells nothing if that may not be read.
// Blocks: some seconds at most.
void check_offsets_retention(const config::Config& config, Findings& findings);

}  // namespace hapax::app
