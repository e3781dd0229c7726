// Which runs and commits become spans, and what these spans tell.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/context.hpp"
#include "traces/exporter.hpp"
#include "traces/trace.hpp"

namespace hapax::traces {

using Time = std::chrono::steady_clock::time_point;

// What the span of a single message is a child of. The span links to the producer's in any case.
enum class Parent : std::uint8_t { link, producer };

// Spans are in the time of the day. Threads measure with a clock that cannot be set.
class WallClock {
 public:
  using Wall = std::chrono::sys_time<std::chrono::nanoseconds>;

  Wall at(Time time) const {
    return wall_ - std::chrono::duration_cast<std::chrono::nanoseconds>(steady_ - time);
  }

 private:
  const Wall wall_ = std::chrono::system_clock::now();
  const Time steady_ = Time::clock::now();
};

// What all threads share.
//
// Thread safety: all of it.
class Tracer {
 public:
  struct Setup {
    observe::HttpTarget target;
    Resource resource;
    Parent parent = Parent::link;
    double ratio = 1;  // of what has no producer's decision
  };
  // `metrics` outlives it.
  Tracer(const Setup& setup, observe::Metrics& metrics)
      : parent_(setup.parent),
        ratio_(setup.ratio),
        exporter_(setup.target, setup.resource, metrics) {}

  // By the random part of the id, so that all who ask about one trace decide the same.
  bool samples(const TraceId& id) const;
  Parent parent() const { return parent_; }
  void send(Span span) { exporter_.send(std::move(span)); }
  // See Exporter::end().
  void end() { exporter_.end(); }

 private:
  const Parent parent_;
  const double ratio_;
  Exporter exporter_;
};

// Thread safety: none.
class Ids {
 public:
  Ids();
  TraceId trace();
  SpanId span();

 private:
  std::mt19937_64 random_;
};

struct Received {
  const Message& message;
  Time received{};  // from Kafka, if this is the first run since; else nothing
};

// The runs of one thread, one after the other.
//
// Thread safety: none.
class Runs {
 public:
  // `tracer`: null if traces are off; outlives it. `are`: process, or call.
  explicit Runs(Tracer* tracer, Operation are = Operation::process)
      : tracer_(tracer), operation_(are) {}

  // A run of these messages begins, of one topic. Returns what it is part of, until the next run
  // begins; null if traces are off. Precondition: not empty.
  const Trace* begin(std::span<const Received> messages, const std::string& handler, Time now,
                     std::optional<std::int64_t> replay = {});

  // It has ended; an end for each of the messages. Nothing happens if none has begun.
  void end(std::span<const Ended> ends, Time now);

 private:
  struct Producers {
    std::vector<std::optional<SpanContext>> of_messages;
    bool any_sampled = false;
    bool any_missing = false;
  };
  static Producers producers_of(std::span<const Received> messages);
  Span span_of(std::span<const Received> messages, const Producers& producers);

  Tracer* const tracer_;
  const Operation operation_;
  Ids ids_;
  Trace trace_;
  std::optional<Span> run_;  // if it is recorded
  std::optional<Span> receive_;
  std::vector<std::size_t> linked_;  // the message of each link
  Time began_{}, received_{};
};

// The commits of one consumer, of which one is in flight.
//
// Thread safety: none.
class Commits {
 public:
  explicit Commits(Tracer* tracer) : tracer_(tracer) {}

  struct Committed {
    const std::string& topic;
    std::int32_t partition;
  };
  void sent(Time now) { sent_ = now; }
  void answered(std::span<const Committed> partitions, std::string error, Time now);

 private:
  Tracer* const tracer_;
  Ids ids_;
  Time sent_{};
};

}  // namespace hapax::traces
