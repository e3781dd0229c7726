#include "gate/outcomes.hpp"

#include <chrono>
#include <utility>

#include "observe/log.hpp"
#include "store/worker/retention.hpp"
#include "worker/stoppable_wait.hpp"

namespace hapax::gate {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenLooks = 10s;
constexpr auto kLease = 60s;
constexpr int kPages = 20;  // in a row that settle nothing: a long backlog is not walked each time

}  // namespace

Outcomes::Outcomes(OutcomesSetup setup)
    : setup_(std::move(setup)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Outcomes::run(const std::stop_token& stop) {
  bool said = false;
  while (!stop.stop_requested()) {
    try {
      look(stop);
      said = false;
    } catch (const store::DatabaseError& error) {
      if (!std::exchange(said, true))
        observe::log::warning("outcomes_delayed",
                              {{"sqlstate", error.sqlstate()}, {"error", error.what()}},
                              "outcomes of accepted requests could not be looked at; their keys "
                              "stay, and it tries again every 10 s");
    }
    worker::wait_unless_stopped(stop, kBetweenLooks);
  }
}

void Outcomes::look(const std::stop_token& stop) {
  store::Session session = setup_.connect();
  const std::string name = "outcomes of " + setup_.gate;
  if (!store::take_lease(session, name, setup_.holder, kLease)) return;
  for (int idle = 0; idle < kPages && !stop.stop_requested();) {
    const Page page = setup_.operations.settle_page(session, after_);
    if (page.was_last) return;
    idle = page.settled > 0 ? 0 : idle + 1;
    if (!store::take_lease(session, name, setup_.holder, kLease)) return;
  }
}

}  // namespace hapax::gate
