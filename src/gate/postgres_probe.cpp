#include "gate/postgres_probe.hpp"

#include <utility>

#include "store/message/answer.hpp"
#include "store/transaction.hpp"
#include "worker/stoppable_wait.hpp"

namespace hapax::gate {
namespace {

constexpr std::chrono::seconds kSilence{10};
constexpr std::chrono::milliseconds kBetweenQuestions{5000};
constexpr std::chrono::milliseconds kAfterNoAnswer{500};
constexpr std::chrono::seconds kAtOnce{1};

}  // namespace

PostgresProbe::PostgresProbe(std::function<store::Session()> connect)
    : connect_(std::move(connect)), thread_([this](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          ask();
          const bool answered = asked_at_.load() == Clock::time_point::max();
          worker::wait_unless_stopped(stop, answered ? kBetweenQuestions : kAfterNoAnswer);
        }
      }) {}

bool PostgresProbe::is_silent() const {
  const auto asked_at = asked_at_.load();
  return asked_at != Clock::time_point::max() && Clock::now() - asked_at >= kSilence;
}

// An error is an answer, too: lanes meet it themselves. But it does not end a silence, because
// nothing is known to work. Nor is it an answer if a connection is lost after a while.
void PostgresProbe::ask() {
  const auto began = Clock::now();
  if (asked_at_.load() == Clock::time_point::max()) asked_at_ = began;
  try {
    if (!session_) session_.emplace(connect_());
    store::Transaction transaction(*session_);
    store::await_durable(transaction);
  } catch (const store::DatabaseError& error) {
    session_.reset();
    const bool is_lost = store::may_be_a_lost_session(error.sqlstate());
    if (is_silent() || (is_lost && Clock::now() - began >= kAtOnce)) return;
  }
  asked_at_ = Clock::time_point::max();
}

}  // namespace hapax::gate
