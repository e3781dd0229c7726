#include "gate/desk.hpp"

#include <gtest/gtest.h>

namespace hapax::gate {
namespace {

std::shared_ptr<Ticket> ticket_of(const std::string& key) {
  auto ticket = std::make_shared<Ticket>();
  ticket->request.key = key;
  ticket->request.body = std::string(100'000, 'x');
  ticket->done = [](const Answer&) {};
  return ticket;
}

TEST(Desk, AnAnsweredTicketKeepsNothing) {
  Desk desk(10, std::chrono::minutes(1));
  const auto slow = ticket_of("slow"), behind = ticket_of("slow");
  const auto quick = ticket_of("quick"), answered = ticket_of("quick");
  for (const auto& ticket : {slow, behind, quick, answered}) desk.submit(ticket);
  ASSERT_EQ(desk.take({}), slow);
  ASSERT_EQ(desk.take({}), quick);
  desk.finish(quick, {});
  desk.expire(Clock::now());  // `behind` still waits in front of it
  EXPECT_LT(quick->request.body.capacity(), 100U);
  EXPECT_LT(answered->request.body.capacity(), 100U);
  EXPECT_EQ(behind->request.body.size(), 100'000U);
}

}  // namespace
}  // namespace hapax::gate
