// What a gate needs before its routes can publish: Kafka's topics, what each takes, and a database
// that is no copy. It looks on a thread of its own, so that the gate serves all else meanwhile.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "app/publishing.hpp"
#include "gate/status.hpp"

namespace hapax::app {

class GatePublishing {
 public:
  // All outlive it.
  GatePublishing(const config::Config& config, gate::Status& status, observe::Metrics& metrics);
  // Looks no more. Blocks: until Kafka has answered, or for seconds.
  ~GatePublishing();
  GatePublishing(const GatePublishing&) = delete;
  GatePublishing& operator=(const GatePublishing&) = delete;

  // For the routes; filled before the status tells that Kafka lacks nothing. Null if the
  // configuration names no topics.
  std::shared_ptr<const flow::Publishing> for_routes() const { return publishing_; }

  // Throws: as check(). Blocks: until the topics are found; if they may be awaited, only for a
  // moment.
  void await_a_moment();

  // Throws: Stop(kUnreachable), if kafka.wait_for_topics is false; what else has ended the search.
  void check();

 private:
  void look_for_topics();
  void begin_once_original();
  void missing(const std::string& why);

  const config::Config& config_;
  gate::Status& status_;
  observe::Metrics& metrics_;
  std::atomic<int> stop_{0};
  std::shared_ptr<flow::Publishing> publishing_;
  std::optional<RelayThread> relay_;
  bool waited_ = false;  // the thread's
  std::future<void> looked_, begun_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace hapax::app
