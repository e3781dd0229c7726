// One lane of a worker, for one message at a time: a handler's instance and a session, through the
// same Processor. What a worker's lane and dispatcher do around it is the loop in run().
//
// Thread safety: none; each thread has its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flow/processor.hpp"
#include "testing/caller.hpp"
#include "testing/probe.hpp"
#include "testing/route.hpp"

namespace hapax::testing {

// What a worker knows of a message before it runs it.
struct Delivery {
  Record record;
  std::int64_t offset = 0;
  int attempts = 0;
  std::chrono::milliseconds failing{0};  // from its first failed run to its last
};

// The views of a record, as a handler gets them. Must not outlive the record.
struct Views {
  Views(const TestedRoute& route, const Delivery& delivery);
  Views(const Views&) = delete;
  Views& operator=(const Views&) = delete;

  std::vector<Header> headers;
  Message::Parts parts;
};

class Lane {
 public:
  // The coordinates' group.
  static constexpr const char* kGroup = "test";

  // `route` outlives it. `pass_time`: called for each delay that a worker would wait.
  // `wait_for_others`: called if another lane's call holds the message's key.
  // Throws: what on_start throws.
  Lane(
      const TestedRoute& route, std::string url,
      std::function<void(std::chrono::milliseconds)> pass_time,
      std::function<void()> wait_for_others = [] {});

  // Until it is settled, halts, or kMaxRuns; or once. Throws: Died, as the caller is armed.
  Outcome run(const Delivery& delivery, const std::optional<Fault>& fault, bool once);

  const Probe& probe() const { return probe_; }
  Probe& probe() { return probe_; }
  const Handler& handler() const { return *handler_; }
  Caller& caller() { return *caller_; }  // of an outside route only

  // What it left in its session so far, each once.
  const std::vector<std::string>& leaks() const { return leaks_; }

 private:
  static constexpr int kMaxRuns = 100;

  void look_for_leaks(store::Session& session);

  const TestedRoute& route_;
  std::function<void(std::chrono::milliseconds)> pass_time_;
  std::function<void()> wait_for_others_;
  Probe probe_;
  std::unique_ptr<Handler> handler_;
  std::unique_ptr<Caller> caller_;        // null if the route does not call
  std::vector<std::string> new_session_;  // its state before any message
  std::vector<std::string> leaks_;
  flow::Processor processor_;
};

}  // namespace hapax::testing
