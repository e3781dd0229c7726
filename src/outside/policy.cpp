#include "outside/policy.hpp"

#include <algorithm>

namespace hapax::outside {

using config::Repeat;

History in_doubt(History history, std::chrono::milliseconds age_of_message) {
  history.calls = std::max(history.calls, 2);
  history.age = std::max(history.age, age_of_message);
  return history;
}

Plan plan(const config::Outside& outside, const History& history, int max_crashes) {
  if (history.answered) return {Step::book};
  if (history.crashes > max_crashes)
    return {Step::give_up,
            "the worker process ended each time that it called, more often than "
            "retry.max_crashes allows; whether the call happened is not known"};
  if (history.calls <= 1) return {Step::call};
  switch (outside.repeat) {
    case Repeat::idempotent:
      if (history.age < outside.remembers) return {Step::call};
      return {Step::give_up,
              "the call may have happened, and the other side forgets its key after "
              "outside.remembers, which is over"};
    case Repeat::queryable: return {Step::reconcile};
    case Repeat::never: break;
  }
  return {Step::give_up,
          "the call was begun and its end is not known; by its route it must never be "
          "repeated"};
}

Then after(const config::Outside& outside, const Ended& ended, int calls, bool exhausted) {
  const bool is_first = calls <= 1 || ended.none_before;
  switch (ended.how) {
    case Ended::How::answered: return Then::keep_answer;
    case Ended::How::refused: return Then::refuse;
    case Ended::How::not_begun: return Then::put_back;
    case Ended::How::not_called:
      if (!exhausted) return Then::try_again;
      return is_first ? Then::fail : Then::give_up;
    case Ended::How::no_call: return is_first ? Then::reject : Then::give_up;
    case Ended::How::failed:
      if (outside.repeat == Repeat::never) return Then::give_up;
      break;
    case Ended::How::unknown: break;
  }
  return exhausted ? Then::give_up : Then::try_again;
}

}  // namespace hapax::outside
