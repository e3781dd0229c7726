// What `hapax run`, `hapax relay` and `hapax gate` need for records that handlers publish.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "cli/command.hpp"
#include "flow/publisher.hpp"
#include "observe/metrics.hpp"
#include "outbox/relay.hpp"

namespace hapax::app {

// Who waits for topics is told while it does. Each may be empty.
struct Waiting {
  std::function<void(const std::string& why)> missing = {};  // whenever another reason is found
  std::function<void()> turned = {};
};

// The topics of publish.topics and what each takes. Waits until they exist, unless
// kafka.wait_for_topics is false. Nothing if the configuration names none, or once `stop` is
// set.
// Throws: Stop(kUnreachable). Blocks: until they exist; then seconds at most.
std::shared_ptr<flow::Publishing> look_up_publishing(const config::Config& config,
                                                     const Waiting& waiting,
                                                     const std::atomic<int>& stop);

// Whether there is anything for a relay: records of handlers, or dead letters for a topic.
bool needs_relay(const config::Config& config);

// The oldest schema that a worker of this configuration starts on. Its dead letter topics may wait.
int oldest_schema(const config::Config& config);

// A relay on a thread of its own, from construction to destruction.
class RelayThread {
 public:
  // All outlive it. `publishing`: null if handlers publish nothing.
  RelayThread(const config::Config& config, const flow::Publishing* publishing,
              observe::Metrics& metrics);

  outbox::Relay& relay() { return relay_; }

  // Asks it to leave; the destructor waits for that.
  void stop() { thread_.request_stop(); }
  // Waits for that, and destroys no Kafka client. After stop().
  void join() { thread_.join(); }

 private:
  outbox::Relay relay_;
  std::jthread thread_;  // last: it uses relay_
};

}  // namespace hapax::app
