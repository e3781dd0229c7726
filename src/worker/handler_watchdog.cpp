#include "worker/handler_watchdog.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>
#include <utility>

#include "observe/log.hpp"
#include "store/message/dead_letter.hpp"

namespace hapax::worker {
namespace {

using std::chrono::milliseconds;
namespace log = observe::log;

constexpr milliseconds kRecordTimeout{5000};
constexpr milliseconds kQuiet{2000};  // if PostgreSQL is silent longer, a handler may wait for it

}  // namespace

bool HandlerWatchdog::is_overdue(const std::optional<Lane::Running>& running) const {
  return running && running->since &&
         Clock::now() - std::max(*running->since, watched_from_) >= timeout_;
}

void HandlerWatchdog::give_up(const Lane::Running& running) {
  log::error("handler_hangs",
             {{"handler", running.handler},
              {"topic", running.source.topic},
              {"partition", running.source.partition},
              {"offset", running.source.offset}},
             "a handler ran longer than worker.handler_timeout; ending the process");
  hangs_ = true;
}

void HandlerWatchdog::look(const std::vector<std::unique_ptr<Lane>>& lanes, const Replays& replays,
                           Clock::duration silence) {
  if (postgres_.is_down() || silence > kQuiet) watched_from_ = Clock::now();
  // The run has locked the replay's row. But the run was counted when it began.
  if (const auto replay = replays.running();
      is_overdue(replay) && postgres_answers([](store::Session&) {}))
    return give_up(*replay);
  for (const auto& lane : lanes) {
    const auto running = lane->running();
    if (!is_overdue(running)) continue;
    const auto record = [run = *running](store::Session& session) {
      const auto counted = store::record_attempt(
          session, {run.source, "the handler ran longer than worker.handler_timeout", "",
                    run.handler, milliseconds(0), run.epoch});
      // The failed run is counted. If the announcement stayed, the run would count as a crash, too,
      // and the message could be given up before its attempts are used up. If the partition is
      // another worker's, the announcement may be that worker's, so it stays.
      if (counted) store::withdraw_run(session, run.source, run.epoch);
    };
    if (postgres_answers(record)) return give_up(*running);
  }
}

// Asks on a thread of its own, because PostgreSQL itself may hang. If it does, the handler's time
// begins to count again.
bool HandlerWatchdog::postgres_answers(std::function<void(store::Session&)> question) {
  const auto given_up = std::make_shared<std::atomic<bool>>(false);
  std::packaged_task<void()> ask([connect = connect_, question = std::move(question), given_up] {
    store::Session session = connect();
    if (!*given_up) question(session);
  });
  std::future<void> asked = ask.get_future();
  std::thread(std::move(ask)).detach();
  try {
    if (asked.wait_for(kRecordTimeout) == std::future_status::ready) {
      asked.get();
      return true;
    }
  } catch (const store::DatabaseError& error) {
    if (error.fault().kind == store::Fault::Kind::sql) {
      log::error("attempt_not_recorded", {{"sqlstate", error.sqlstate()}},
                 "PostgreSQL answers, and refuses");
      return true;
    }
  }
  *given_up = true;
  watched_from_ = Clock::now();
  return false;
}

}  // namespace hapax::worker
