#include "traces/tracer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hapax::traces {
namespace {

constexpr std::uint64_t kRandomPart = std::uint64_t{1} << 56U;  // of a trace id: its last 7 bytes

template <class Id>
Id random_id(std::mt19937_64& random) {
  Id id{};
  do {
    for (std::size_t at = 0; at < id.size(); at += sizeof(std::uint64_t)) {
      const std::uint64_t word = random();
      std::memcpy(id.data() + at, &word, sizeof word);
    }
  } while (id == Id{});
  return id;
}

std::mt19937_64 seeded() {
  std::random_device device;
  std::seed_seq seeds{device(), device(), device(), device(),
                      device(), device(), device(), device()};
  return std::mt19937_64(seeds);
}

}  // namespace

bool Tracer::samples(const TraceId& id) const {
  std::uint64_t random = 0;
  for (std::size_t at = 9; at < id.size(); ++at) random = random << 8U | id[at];
  return static_cast<double>(random) >= (1 - ratio_) * static_cast<double>(kRandomPart);
}

Ids::Ids() : random_(seeded()) {}

TraceId Ids::trace() { return random_id<TraceId>(random_); }

SpanId Ids::span() { return random_id<SpanId>(random_); }

Runs::Producers Runs::producers_of(std::span<const Received> messages) {
  Producers producers;
  for (const Received& each : messages) {
    const auto& producer = producers.of_messages.emplace_back(producer_of(each.message));
    if (!producer) producers.any_missing = true;
    if (producer && producer->is_sampled()) producers.any_sampled = true;
  }
  return producers;
}

const Trace* Runs::begin(std::span<const Received> messages, const std::string& handler, Time now,
                         std::optional<std::int64_t> replay) {
  if (tracer_ == nullptr) return nullptr;
  run_.reset();
  receive_.reset();
  const Producers producers = producers_of(messages);
  const auto& producer = producers.of_messages.front();
  trace_ = {.continues = tracer_->parent() == Parent::producer && messages.size() == 1 && producer};
  trace_.context = {.trace_id = trace_.continues ? producer->trace_id : ids_.trace(),
                    .span_id = ids_.span()};
  trace_.is_recorded =
      producers.any_sampled || (producers.any_missing && tracer_->samples(trace_.context.trace_id));
  trace_.context.flags = trace_.continues ? producer->flags : trace_.is_recorded ? 1 : 0;
  if (!trace_.is_recorded) return &trace_;

  began_ = now;
  run_ = span_of(messages, producers);
  run_->operation = operation_;
  run_->handler = handler;
  run_->replay = replay;
  received_ = Time::max();
  for (const Received& each : messages)
    if (each.received != Time{}) received_ = std::min(received_, each.received);
  if (received_ == Time::max()) return &trace_;
  receive_ = span_of(messages, producers);
  receive_->operation = Operation::receive;
  receive_->context.span_id = ids_.span();
  if (!trace_.continues) run_->parent = receive_->context.span_id;
  return &trace_;
}

// What the spans of one run have in common.
Span Runs::span_of(std::span<const Received> messages, const Producers& producers) {
  const Message& first = messages.front().message;
  Span span{.context = trace_.context, .topic = std::string(first.topic())};
  if (trace_.continues) {
    span.parent = producers.of_messages.front()->span_id;
    span.tracestate = tracestate_of(first);
  }
  if (messages.size() == 1) {
    span.partition = first.partition();
    span.offset = first.offset();
    span.tombstone = !first.payload();
  } else {
    span.messages = messages.size();
  }
  linked_.clear();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto& producer = producers.of_messages[i];
    if (!producer) continue;
    if (span.links.size() == kMaxLinks) {
      ++span.links_left_out;
      continue;
    }
    const Message& message = messages[i].message;
    span.links.push_back({.context = *producer,
                          .tracestate = tracestate_of(message),
                          .partition = message.partition(),
                          .offset = message.offset()});
    linked_.push_back(i);
  }
  return span;
}

void Runs::end(std::span<const Ended> ends, Time now) {
  if (!run_) return;
  const WallClock wall;
  if (receive_) {
    receive_->begin = wall.at(received_);
    receive_->end = wall.at(began_);
    tracer_->send(*std::exchange(receive_, std::nullopt));
  }
  Span& span = *run_;
  span.begin = wall.at(began_);
  span.end = wall.at(now);
  const auto error =
      std::ranges::find_if(ends, [](const Ended& end) { return !end.error.empty(); });
  if (error != ends.end()) span.error = error->error;
  if (ends.size() == 1)
    span.outcome = ends.front().outcome;
  else
    for (std::size_t i = 0; i < span.links.size(); ++i)
      span.links[i].outcome = ends[linked_[i]].outcome;
  tracer_->send(*std::exchange(run_, std::nullopt));
}

void Commits::answered(std::span<const Committed> partitions, std::string error, Time now) {
  if (tracer_ == nullptr || partitions.empty() || sent_ == Time{}) return;
  const TraceId trace = ids_.trace();
  if (!tracer_->samples(trace)) return;
  const WallClock wall;
  Span span{.operation = Operation::settle,
            .context = {.trace_id = trace, .span_id = ids_.span(), .flags = 1},
            .begin = wall.at(sent_),
            .end = wall.at(now),
            .error = std::move(error)};
  const Committed& first = partitions.front();
  if (std::ranges::all_of(partitions,
                          [&](const Committed& each) { return each.topic == first.topic; }))
    span.topic = first.topic;
  if (partitions.size() == 1) span.partition = first.partition;
  tracer_->send(std::move(span));
  sent_ = {};
}

}  // namespace hapax::traces
