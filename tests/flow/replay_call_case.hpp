// The base of the tests of replays that call to the outside.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "flow/booking.hpp"
#include "flow/replay_case.hpp"
#include "store/operator/operator.hpp"
#include "store/operator/outside_orders.hpp"

namespace hapax::flow {

using namespace std::chrono_literals;

// Books as the body does. The test calls, in the place of a worker's threads.
class Books final : public OutsideHandler {
 public:
  explicit Books(const Body& body) : body_(body) {}
  nlohmann::json call(const Message&, const Call&) override { throw std::logic_error("no call"); }
  void book(const Message& message, const nlohmann::json&, Context& context) override {
    body_(message, context);
  }

 private:
  const Body& body_;
};

class CallOfAReplay : public ReplayCase {
 protected:
  CallOfAReplay() : looker(options) {
    letter = dead();
    route.outside = config::Outside{.repeat = config::Repeat::never};
    holder.id = store::register_holder(looker, "group", "w", 1h);
    holder.lease.granted(outside::Lease::Clock::now());
    want(letter);
  }

  // `calls` counts them; `meanwhile` runs while one is under way.
  Replayed replay(const Body& body = book,
                  const std::function<void(const std::function<void()>&)>& during = {}) {
    Booking handler(std::make_unique<Books>(body));
    const auto make_call = [&](const Route&, const store::Source&, outside::CallToMake& call,
                               const std::function<void()>& meanwhile) {
      ++calls;
      under = call.holder;
      if (during) during(meanwhile);
      call.began = std::chrono::steady_clock::now();
      call.end = ended;
    };
    const auto wait = [](std::chrono::milliseconds time) {
      std::this_thread::sleep_for(time);
      return true;
    };
    Replayer replayer({.connect = [connect = options] { return store::Session(connect); },
                       .group = "group",
                       .worker = "w",
                       .routes = {{&route, &handler}},
                       .running =
                           [&](const Route* run, const store::Source&) {
                             if (run == nullptr && before_its_end) before_its_end();
                           },
                       .outside = Replayer::Outside{holder, make_call, wait}});
    return replayer.run_next();
  }

  // Why it is refused; "": it is not.
  std::string decide(store::CallDecision::What what, const std::string& key = "k1") {
    store::Session owner(database.owner());
    store::CallDecision decision{.what = what, .group = "group", .retention = 1h};
    decision.who = "bob";
    decision.why = "seen";
    if (what == store::CallDecision::What::happened) decision.answer = R"({"charge":"gw"})";
    try {
      store::decide_call(owner, {key, route.key.scope, ""}, decision);
      return "";
    } catch (const store::Refused& refused) {
      return refused.what();
    }
  }

  // One whose key is in its payload. It was given up on before the route called.
  void give_up_on_one_with_its_key_inside() {
    database.run("UPDATE hapax.replays SET ended_at = now(), outcome = 'cancelled'");
    route.key.sources = {{key::Source::Kind::json, {"/id"}}};
    const auto outside = std::exchange(route.outside, std::nullopt);
    letter = dead({.payload = R"({"id":"k1"})", .offset = 30});
    route.outside = outside;
  }

  std::string key(const std::string& columns) {
    return database.value("SELECT " + columns + " FROM hapax.idempotency_keys");
  }
  std::string handed_on() const { return outside::key_to_hand_on(route.key.scope, {"k1", "", {}}); }
  void end_sessions() {
    database.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE usename = 'hapax_worker' AND datname = current_database()");
  }

  void expect_no_edited_call_behind_steps_by(const std::string& rule) {
    ended = {outside::Ended::How::failed, "cut"};
    const auto keep_a_step = [&](const auto&) {
      database.run("UPDATE hapax.idempotency_keys SET steps = json_build_object(':payload', '" +
                   rule + " ' || encode(sha256('10'), 'hex'), 'charge', 1)");
    };
    EXPECT_EQ(replay(book, keep_a_step).result, ReplayResult::failed);
    EXPECT_EQ(decide(store::CallDecision::What::did_not_happen), "");
    database.run("UPDATE hapax.replays SET ended_at = now(), outcome = 'cancelled'");
    want(letter, "99");
    const Replayed edited = replay();
    EXPECT_EQ(edited.result, ReplayResult::refused);
    EXPECT_THAT(edited.detail, testing::HasSubstr("steps of its call are done (charge)"));
    EXPECT_EQ(key("status"), "started") << "nothing has changed";
    want(letter);
    ended = {outside::Ended::How::answered, R"({"charge":"c1"})"};
    EXPECT_EQ(replay().result, ReplayResult::completed);
    EXPECT_EQ(effects(), "k1=10");
  }

  store::Session looker;
  outside::Holder holder{1h};
  std::int64_t letter = 0;
  outside::Ended ended = {outside::Ended::How::answered, R"({"charge":"c1"})"};
  int calls = 0;
  std::function<void()> before_its_end;  // once the run is over, and not noted yet
  store::HolderId under = 0;             // whose lease the last call was to be made
};

}  // namespace hapax::flow
