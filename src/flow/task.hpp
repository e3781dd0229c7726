// One message to process, with what the worker knows of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "flow/breaker.hpp"
#include "flow/route.hpp"
#include "hapax/handler.hpp"
#include "hapax/message.hpp"
#include "payload/reading.hpp"
#include "store/message/source.hpp"
#include "traces/carried.hpp"

namespace hapax::flow {

// What the other side answered to the call of an outside message, which is to be booked.
struct Answered {
  std::int64_t token = 0;                    // of the take that called
  std::string answer;                        // JSON
  std::shared_ptr<const void> counted = {};  // as one that waits for its booking, while it lives
};

struct Task {
  const Route& route;
  const Message& message;
  const std::string& group;
  std::int32_t generation = 1;
  // Below this offset, a message that PostgreSQL does not know halts instead of running (guarantees
  // I8).
  std::int64_t guard_below = 0;
  // Below this offset, PostgreSQL may have forgotten a call (docs/outside.md).
  std::int64_t doubt_below = 0;
  int attempts = 0;       // failed runs so far
  int outages = 0;        // connections lost while it ran, in this process
  bool cautious = false;  // announce the run first: the last processes died (guarantees)
  const std::string* skip = nullptr;     // an operator's decision not to run it: who and why
  std::chrono::milliseconds failing{0};  // from its first failed run to its last
  std::string_view incarnation = {};     // of PostgreSQL at the partition's start; empty: any
  // The partition's epoch when this process announced a cautious run that it could not withdraw.
  std::optional<std::int64_t> announced = {};
  int crashes = 0;             // see Outcome: the run before this one in this process gave it up
  bool remembered = false;     // in hapax.attempts at the partition's start
  bool has_letter = false;     // it was a dead letter at the partition's start
  Breaker* breaker = nullptr;  // of the route, in this process
  int agains = 0;              // runs in a row that ended in Result::again, in this process
  std::int64_t epoch = 0;      // of its partition, as its worker took it; 0: no worker has it
  const Answered* answered = nullptr;  // of an outside route: to be booked
  bool settled = false;                // by position: it was, before its partition's start
  bool in_doubt = false;  // a transaction with it may have been committed, or may still be
  const traces::Trace* trace = nullptr;  // that its run is part of; null: traces are off
  // The result of decoding; null if the route has no payload.format, or `read` is set.
  const payload::Reading* reading = nullptr;
  // Decodes a cautious message, and returns this task with what came of that. It is called only
  // when the run is announced, so a payload that kills the process has named its message. Empty:
  // nothing to do.
  std::function<const Task&()> read = {};

  bool is_read() const { return !read && (reading == nullptr || reading->is_readable()); }
  bool is_in_attempts() const { return attempts > 0 || announced || remembered; }
  // Whether its coordinates may tell what its key does not.
  bool may_be_known() const { return message.offset() < guard_below || remembered || has_letter; }

  store::Source source() const {
    return {.group = group,
            .topic = std::string(message.topic()),
            .generation = generation,
            .partition = message.partition(),
            .offset = message.offset()};
  }
};

// One message of a batch. Those of one order key follow each other, in offset order.
struct Job {
  Task task;
  Handler* handler;
  std::size_t order_key;  // any number; equal for messages of one order key
};

// Called before each run of a handler, and with null after it; may be empty. The task is one that
// the processor was given or that its read() returned, never a copy.
using HandlerWatch = std::function<void(const Task*, std::chrono::steady_clock::time_point now)>;

// A handler runs, as the watchdog sees it, while this lives.
class Watched {
 public:
  Watched(const HandlerWatch& watch, const Task& task, std::chrono::steady_clock::time_point now)
      : watch_(watch) {
    if (watch_) watch_(&task, now);
  }
  ~Watched() {
    if (watch_) watch_(nullptr, {});
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

 private:
  const HandlerWatch& watch_;
};

}  // namespace hapax::flow
