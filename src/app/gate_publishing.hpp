// What a gate needs of Kafka before its routes can publish: its topics, and what each takes. It
// looks for them on a thread of its own, so that the gate serves all else meanwhile.
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
  void look();

  const config::Config& config_;
  gate::Status& status_;
  observe::Metrics& metrics_;
  std::atomic<int> stop_{0};
  std::shared_ptr<flow::Publishing> publishing_;
  std::optional<RelayThread> relay_;
  std::future<void> looked_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace hapax::app
