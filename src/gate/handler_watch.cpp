#include "gate/handler_watch.hpp"

#include <algorithm>
#include <utility>

#include "gate/problem.hpp"
#include "observe/log.hpp"
#include "worker/stoppable_wait.hpp"

namespace hapax::gate {
namespace {

constexpr std::chrono::milliseconds kWatchPause{50};

}  // namespace

HandlerWatch::HandlerWatch(HandlerWatchSetup setup)
    : setup_(std::move(setup)), thread_([this](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          look();
          worker::wait_unless_stopped(stop, kWatchPause);
        }
      }) {}

void HandlerWatch::look() {
  look_at_postgres();
  const auto now = Clock::now();
  for (HandlerTime* const lane : setup_.lanes) break_up(*lane, now);
  for (HandlerTime* const lane : setup_.lanes)
    if (const auto ticket = lane->give_up(now, setup_.gate.handler_timeout)) give_up(ticket);
  lost_ = static_cast<std::size_t>(
      std::ranges::count_if(setup_.lanes, [](const auto* lane) { return lane->is_given_up(); }));
  setup_.metrics.gate_lost(lost_);
}

// A lane's COMMIT may be among what PostgreSQL has not answered.
void HandlerWatch::look_at_postgres() {
  const bool silent = setup_.probe.is_silent();
  setup_.status.postgres_silent(silent);
  if (silent)
    setup_.desk.give_up_all(unavailable(
        "The database does not answer. It is not known whether it took effect. Try again with the "
        "same key."));
}

// If one handler of a batch is slow, the other requests do not wait for it.
void HandlerWatch::break_up(HandlerTime& lane, Clock::time_point now) {
  for (auto others = lane.break_up(now); !others.empty(); others.pop_back()) {
    others.back()->request.runs_alone = true;
    setup_.desk.put_back(others.back());
  }
}

void HandlerWatch::give_up(const std::shared_ptr<Ticket>& ticket) {
  const flow::Route& route = setup_.routes[ticket->request.route];
  observe::log::error("handler_hangs", {{"route", route.topic}, {"handler", route.handler.name}},
                      "a handler ran longer than gate.handler_timeout; its request is answered 503 "
                      "and takes no effect, its lane is lost until the handler comes back");
  setup_.desk.give_up(
      ticket, unavailable("The request took too long and took no effect. Try again with the same "
                          "key."));
}

}  // namespace hapax::gate
