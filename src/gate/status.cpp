#include "gate/status.hpp"

#include <utility>

#include "observe/log.hpp"
#include "store/connect_error.hpp"

namespace hapax::gate {
namespace {

constexpr std::chrono::milliseconds kAskAgain{500};

}  // namespace

void Status::postgres_up() {
  const sync::Lock lock(mutex_);
  if (silent_) return;
  if (down_) observe::log::info("postgres_up", {}, "PostgreSQL is back; requests run again");
  down_ = false;
  metrics_.postgres_came_up();
}

void Status::postgres_down(const std::string& sqlstate, const std::string& text) {
  const sync::Lock lock(mutex_);
  ask_again_ = Clock::now() + kAskAgain;
  if (down_) return;
  down_ = true;
  const store::Outage outage = store::explain_outage(sqlstate, text);
  observe::log::warning("postgres_down", {{"sqlstate", sqlstate}, {"error", outage.line}},
                        "PostgreSQL is away; requests are answered 503, it goes on by itself");
  metrics_.postgres_went_down();
}

void Status::postgres_silent(bool is) {
  {
    const sync::Lock lock(mutex_);
    if (std::exchange(silent_, is) == is) return;
  }
  is ? postgres_down("", "it does not answer") : postgres_up();
}

bool Status::is_postgres_down() const {
  const sync::Lock lock(mutex_);
  return down_;
}

bool Status::is_known_away() const {
  const sync::Lock lock(mutex_);
  return silent_ || (down_ && Clock::now() < ask_again_);
}

void Status::kafka_missing(const std::string& why) {
  const sync::Lock lock(mutex_);
  missing_ = why;
}

void Status::kafka_found() {
  const sync::Lock lock(mutex_);
  missing_.clear();
}

bool Status::lacks_kafka() const {
  const sync::Lock lock(mutex_);
  return !missing_.empty();
}

void Status::close_route(const std::string& path, const std::string& why) {
  const sync::Lock lock(mutex_);
  if (!closed_.try_emplace(path, why).second) return;
  observe::log::error("route_closed", {{"route", path}, {"reason", why}},
                      "a handler ended its transaction, so part of an effect may stand "
                      "alone; the route answers 503 until the gate is started again");
  metrics_.halted(why);
}

bool Status::is_closed(const std::string& path) const {
  const sync::Lock lock(mutex_);
  return closed_.contains(path);
}

observe::Verdict Status::live() const { return {true, {}, {{"draining", is_draining()}}}; }

observe::Verdict Status::ready() const {
  observe::Verdict verdict;
  if (!started_) verdict.reasons.emplace_back("is starting");
  if (draining_) verdict.reasons.emplace_back("is draining");
  const sync::Lock lock(mutex_);
  if (down_) verdict.reasons.emplace_back("PostgreSQL is away");
  if (!missing_.empty()) verdict.reasons.push_back("what publishes is answered 503: " + missing_);
  for (const auto& [path, why] : closed_)
    verdict.reasons.push_back("route " + path + " is closed: " + why);
  verdict.ok = verdict.reasons.empty();
  verdict.detail = {{"postgres", down_ ? "down" : "up"}};
  return verdict;
}

}  // namespace hapax::gate
