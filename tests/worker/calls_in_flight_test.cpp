// Calls whose handler's stop callback blocks: nothing but that call may wait for it.
#include "worker/calls_in_flight.hpp"

#include <gtest/gtest.h>

#include <future>

#include "outside/kept_in_memory.hpp"

namespace hapax::worker {
namespace {

using namespace std::chrono_literals;

struct Blocking final : OutsideHandler {
  nlohmann::json call(const Message& /*message*/, const Call& call) override {
    const std::stop_callback blocks(call.stop_token(), [this] {
      asked.set_value();
      released.wait();
    });
    calls.set_value();
    released.wait();
    return {};
  }
  void book(const Message& /*message*/, const nlohmann::json& /*answer*/,
            Context& /*context*/) override {}

  std::promise<void> calls, asked, release;
  const std::shared_future<void> released = release.get_future().share();
};

TEST(CallsInFlight, AreWatchedWhileAStopCallbackBlocks) {
  outside::Holder holder(1h);
  holder.lease.granted(outside::Lease::Clock::now());
  holder.id = 1;
  const std::vector<flow::Route> routes(1);
  auto made = std::make_unique<Blocking>();
  Blocking& handler = *made;
  std::vector<CallsInFlight::Handlers> handlers(1);
  handlers.front().push_back(std::move(made));
  Dispatcher dispatcher;
  outside::KeptInMemory steps;
  CallsInFlight in_flight(dispatcher, routes, std::move(handlers), holder, steps, nullptr);
  const Message message({.payload = "{}"});
  outside::CallToMake call;
  call.message = &message;
  call.holder = 1;
  call.max_duration = 1h;
  const auto replay = std::async(
      std::launch::async, [&] { in_flight.make_for_replay(routes.front(), {}, call, [] {}); });
  handler.calls.get_future().wait();
  const auto looked = std::async(std::launch::async, [&] {
    in_flight.ask_to_stop();
    in_flight.watch();
    return in_flight.running().size();
  });
  EXPECT_EQ(handler.asked.get_future().wait_for(1min), std::future_status::ready);
  EXPECT_EQ(looked.wait_for(10s), std::future_status::ready) << "it waits for the callback";
  handler.release.set_value();
  replay.wait();
}

}  // namespace
}  // namespace hapax::worker
