// How callers share the lanes of a gate.
#include <memory>
#include <vector>

#include "gate/gate_case.hpp"

namespace hapax::gate {
namespace {

using CallersOfAGate = GateCase;

TEST_F(CallersOfAGate, WhoseHandlersAreSlowLeaveALaneToOthers) {
  Door door;
  body = [&](const Message& message, Context& context) {
    if (*message.payload() == "10") door.pass();
    book(message, context);
  };
  // Else the gate would wait for its handlers for ever if the test fails.
  const std::shared_ptr<void> at_the_end(nullptr, [&](void*) { door.open(); });
  const auto as_bob = [&](const std::string& key) {
    return ask(request("POST", "/payments",
                       {{"Idempotency-Key", key}, {"Authorization", "Bearer token-of-bob"}}, "1"));
  };
  EXPECT_EQ(post("a", "1").status, 201);
  EXPECT_EQ(as_bob("b1").status, 201);
  std::vector<std::unique_ptr<HttpClient>> slow;
  for (const char* key : {"s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"}) {
    slow.push_back(std::make_unique<HttpClient>(port()));
    slow.back()->send(request("POST", "/payments", keyed(key), "10"));
  }
  door.await_waiting(3);
  await_metric(gate(), "hapax_gate_queue", "5");
  EXPECT_EQ(as_bob("b2").status, 201);
  door.open();
  for (const auto& client : slow) EXPECT_EQ(client->read().status, 201);
  // A handler may run again, alone, if requests that shared a transaction took too long.
  EXPECT_EQ(database.value("SELECT count(*) FROM effects"), "11");
}

}  // namespace
}  // namespace hapax::gate
