// Makes the Outcomes of one message.
#pragma once

#include <string>
#include <utility>

#include "flow/attempt.hpp"
#include "flow/outcome.hpp"
#include "payload/reader.hpp"
#include "store/fault.hpp"
#include "store/message/dead_letter.hpp"

namespace hapax::flow {

inline store::DeadLetter letter_of(const Attempt& attempt, const Outcome& verdict) {
  const Route& route = attempt.task.route;
  return {.message = attempt.task.message,
          .source = attempt.source,
          .reason = verdict.reason,
          .error = verdict.detail,
          .sqlstate = verdict.sqlstate,
          .attempts = verdict.attempts,
          .handler = route.handler.name,
          .handler_version = route.handler.version,
          .scope = route.key.scope,
          .identity = attempt.identity ? &*attempt.identity : nullptr,
          .keep_bytes = attempt.keep_bytes,
          .trace_id = traces::Carried(attempt.task.message, attempt.task.trace).trace_id()};
}

inline std::string name_of(const store::KeyHolder& holder) {
  return holder.topic + "/" + std::to_string(holder.partition) + "/" +
         std::to_string(holder.offset) + " (group " + holder.group + ", generation " +
         std::to_string(holder.generation) + ")";
}

inline Outcome halt(Result result, std::string reason, std::string detail,
                    std::string sqlstate = {}) {
  return {.result = result,
          .reason = std::move(reason),
          .detail = std::move(detail),
          .sqlstate = std::move(sqlstate)};
}

inline Outcome gave_up(std::string reason, std::string detail, int attempts,
                       std::string sqlstate = {}) {
  return {.result = Result::failed,
          .reason = std::move(reason),
          .detail = std::move(detail),
          .sqlstate = std::move(sqlstate),
          .attempts = attempts};
}

// Its dead letter exists already, so no operator has to look.
inline constexpr const char* kRedelivered = "redelivered";

// It killed the process too often.
inline constexpr const char* kCrashed = "crashed";

// An operator decided that it never runs.
inline constexpr const char* kSkipped = "skipped_by_operator";

inline Outcome redelivered(int attempts) {
  return gave_up(kRedelivered, "is a dead letter already", attempts);
}

// Not run, because its route's breaker is open. The halt that was asked for drops the message.
inline Outcome held() {
  return {.result = Result::waits, .reason = "breaker", .wait = std::chrono::seconds(1)};
}

// PostgreSQL is away.
inline Outcome away(std::string why) {
  return {.result = Result::outage, .reason = "postgres", .detail = std::move(why)};
}

// The key of an outside message must be taken, or taken again, before anything is booked.
inline Outcome to_call(std::string reason, int attempts, std::chrono::milliseconds wait = {}) {
  return {.result = Result::busy,
          .reason = std::move(reason),
          .wait = wait,
          .attempts = attempts,
          .to_call = true};
}

// A dead letter, because the payload violates the route's schema. Nothing: the handler may run.
inline std::optional<Outcome> violation(const Task& task) {
  if (task.route.payload == nullptr) return std::nullopt;
  auto refusal = task.route.payload->violation(task.message);
  if (!refusal) return std::nullopt;
  return gave_up(std::move(refusal->reason), std::move(refusal->detail), task.attempts);
}

// The payload could not be decoded: a dead letter, or a wait for the registry. Nothing: it was.
inline std::optional<Outcome> unread(const Task& task) {
  if (task.reading == nullptr || task.reading->is_readable()) return std::nullopt;
  if (task.reading->state == payload::Reading::State::unreadable)
    return gave_up(task.reading->reason, task.reading->detail, task.attempts);
  return Outcome{.result = Result::busy,
                 .reason = task.reading->reason,
                 .detail = task.reading->detail,
                 .wait = task.reading->wait,
                 .attempts = task.attempts};
}

// Not run now, and not counted, because something prevents it that is about to change.
inline Outcome later(std::string reason, int attempts) {
  return {.result = Result::busy,
          .reason = std::move(reason),
          .wait = kKeyHeldWait,
          .attempts = attempts};
}

// Another worker has the partition. This one stood still, perhaps for so long that retention has
// removed the keys of its successor. The keeper is about to notice.
inline Outcome fenced(const Task& task) { return later("fenced", task.attempts); }

}  // namespace hapax::flow
