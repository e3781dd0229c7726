// Making Outcomes, for flow/processor*.cpp.
#pragma once

#include <string>
#include <utility>

#include "flow/outcome.hpp"
#include "flow/processor.hpp"
#include "store/dead_letter.hpp"
#include "store/fault.hpp"

namespace hapax::flow {

inline store::DeadLetter letter_of(const Task& task, const store::Source& source,
                                   const key::Identity* identity, const Outcome& verdict) {
  return {task.message,
          source,
          verdict.reason,
          verdict.detail,
          verdict.sqlstate,
          verdict.attempts,
          task.route.handler.name,
          task.route.handler.version,
          task.route.key.scope,
          identity,
          std::nullopt,
          task.keep_bytes};
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

// Its dead letter is there already: nothing has happened that anybody need look at.
inline constexpr const char* kRedelivered = "redelivered";

inline Outcome redelivered(int attempts) {
  return gave_up(kRedelivered, "is a dead letter already", attempts);
}

// Not run, as its route's breaker is open: the halt that was asked for takes it away.
inline Outcome held() {
  return {.result = Result::waits, .reason = "breaker", .wait = std::chrono::seconds(1)};
}

inline Outcome later(Result result, std::string reason, const store::Fault& fault,
                     std::chrono::milliseconds wait, int attempts) {
  return {.result = result,
          .reason = std::move(reason),
          .detail = fault.text,
          .sqlstate = fault.sqlstate,
          .wait = wait,
          .attempts = attempts};
}

}  // namespace hapax::flow
