#include "gate/desk.hpp"

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <random>
#include <set>

#include "gate/problem.hpp"
#include "gate/request_message.hpp"

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

std::shared_ptr<Ticket> small(const std::string& body) {
  auto ticket = std::make_shared<Ticket>();
  ticket->request.key = "k";
  ticket->request.body = body;
  ticket->done = [](const Answer&) {};
  return ticket;
}

// C is placed again behind D, though C has waited longer.
TEST(Desk, LetsATicketWaitThatCameBetweenTwoThatArePlacedAgain) {
  Desk desk(10, std::chrono::minutes(1));
  const auto a = small("a"), b = small("b"), same = small("a"), c = small("c"), d = small("d"),
             n = small("n");
  same->done = [&](const Answer&) { desk.submit(d); };
  for (const auto& ticket : {a, b, same, c}) desk.submit(ticket);
  ASSERT_EQ(desk.take({}), a);
  desk.finish(a, {drifted(), {}});
  ASSERT_EQ(desk.take({}), b);
  desk.expire(c->give_up);
  EXPECT_FALSE(c->done);
  EXPECT_TRUE(d->done);
  desk.finish(b, {});
  EXPECT_EQ(desk.take({}), d);
  desk.submit(n);
  desk.expire(d->give_up);
  EXPECT_TRUE(d->done) << "it has a lane, and waits for nobody";
  EXPECT_TRUE(n->done);
  desk.finish(d, {});
  EXPECT_EQ(desk.take({}), n);
}

std::shared_ptr<Ticket> of_tenant(const std::string& tenant, const std::string& key,
                                  std::map<std::string, int>& answers) {
  auto ticket = small("");
  ticket->request.key = key;
  ticket->request.tenant = tenant;
  ticket->done = [&answers, key](const Answer& answer) { answers[key] = answer.response.status; };
  return ticket;
}

TEST(Desk, NotMoreWaitForKeysThanForLanes) {
  Desk desk(2, std::chrono::minutes(1));
  std::map<std::string, int> answers;
  const auto first = of_tenant("ann", "k", answers);
  desk.submit(first);
  for (int i = 0; i < 2; ++i) desk.submit(of_tenant("ann", "k", answers));
  EXPECT_TRUE(answers.empty());
  const auto third = of_tenant("ann", "k", answers);
  desk.submit(third);
  EXPECT_FALSE(third->done);
  EXPECT_EQ(answers["k"], 503);
  EXPECT_EQ(desk.counts().waiting, 2U);
}

// A caller who retries one key a thousand times must not take the wait from the retries of others.
TEST(Desk, WhoHasMostThatWaitForKeysMakesRoom) {
  Desk desk(2, std::chrono::minutes(1));
  std::map<std::string, int> answers;
  for (int i = 0; i < 3; ++i) desk.submit(of_tenant("ann", "k", answers));
  for (int i = 0; i < 2; ++i) desk.submit(of_tenant("bob", "b", answers));
  EXPECT_FALSE(answers.contains("b")) << answers["b"];
  EXPECT_EQ(desk.counts().waiting, 2U);
}

TEST(Desk, ALaneServesWhoHasTheFewestLanes) {
  Desk desk(10, std::chrono::minutes(1));
  std::map<std::string, int> answers;
  for (const char* key : {"a1", "a2", "a3", "a4", "a5"})
    desk.submit(of_tenant("ann", key, answers));
  for (const char* key : {"b1", "b2", "b3"}) desk.submit(of_tenant("bob", key, answers));
  const auto take = [&](const std::string& key) {
    const auto ticket = desk.take({});
    EXPECT_EQ(ticket->request.key, key);
    return ticket;
  };
  const auto a1 = take("a1");
  const auto b1 = take("b1");
  take("a2");
  desk.finish(b1, {});
  take("b2");
  take("b3");
  desk.put_back(a1);
  take("a1");
}

TEST(Desk, KeepsTheLastIdleLaneForACallerOfWhomNoLaneHasATicket) {
  Desk desk(10, std::chrono::minutes(1), true);
  std::map<std::string, int> answers;
  for (const char* key : {"a1", "a2", "a3"}) desk.submit(of_tenant("ann", key, answers));
  EXPECT_EQ(desk.take({})->request.key, "a1");
  EXPECT_EQ(desk.take({})->request.key, "a2") << "while there is one caller, it has all lanes";
  desk.submit(of_tenant("bob", "b1", answers));
  EXPECT_EQ(desk.take({})->request.key, "b1");
  ASSERT_EQ(desk.take({}), nullptr);
  desk.submit(of_tenant("eve", "e1", answers));
  EXPECT_EQ(desk.take({})->request.key, "e1");
  auto idle = std::async(std::launch::async, [&] { return desk.take(std::chrono::minutes(1)); });
  std::shared_ptr<Ticket> taken;
  while (!taken) taken = desk.take({});
  EXPECT_EQ(taken->request.key, "a3") << "another lane is idle";
  EXPECT_EQ(idle.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  desk.submit(of_tenant("eve", "e2", answers));
  EXPECT_EQ(desk.counts().queued, 1U);
  desk.stop();
  EXPECT_EQ(idle.get()->request.key, "e2");
}

TEST(Desk, TheLastIdleLaneTakesNoTicketsOfOtherCallersInABatch) {
  Desk desk(10, std::chrono::minutes(1), true);
  std::map<std::string, int> answers;
  const BatchRule rule{.lanes = 1, .most = [](const Request&) { return std::size_t{10}; }};
  for (const char* key : {"a1", "a2", "a3"}) desk.submit(of_tenant("ann", key, answers));
  EXPECT_EQ(desk.take({}, {.lanes = 3, .most = rule.most}).size(), 1U);
  for (const char* key : {"b1", "b2"}) desk.submit(of_tenant("bob", key, answers));
  const auto batch = desk.take({}, rule);
  ASSERT_EQ(batch.size(), 2U);
  EXPECT_EQ(batch[0]->request.key + batch[1]->request.key, "b1b2");
}

TEST(Desk, WhoHasMostInAFullQueueMakesRoom) {
  Desk desk(3, std::chrono::minutes(1));
  std::map<std::string, int> answers;
  for (const char* key : {"a1", "a2", "a3"}) desk.submit(of_tenant("ann", key, answers));
  const auto behind = of_tenant("ann", "a3", answers);
  desk.submit(behind);
  desk.submit(of_tenant("bob", "b1", answers));
  EXPECT_EQ(answers, (std::map<std::string, int>{{"a3", 503}}));
  EXPECT_FALSE(behind->done) << "it waited for a request that is gone";
  desk.submit(of_tenant("bob", "b2", answers));
  desk.submit(of_tenant("ann", "a4", answers));
  EXPECT_EQ(answers, (std::map<std::string, int>{{"a3", 503}, {"b2", 503}, {"a4", 503}}));
  EXPECT_EQ(desk.counts().queued, 3U);
}

// A desk, and lanes and clients that do anything at any time, also while an answer is given.
class AnyDesk {
 public:
  explicit AnyDesk(unsigned seed) : random_(seed) {}

  void step() {
    switch (below(6)) {
      case 0: return take();
      case 1: return finish();
      case 2: return expire();
      default: return submit();
    }
  }

  // Each ticket is answered without the time limit, so none waits for one that is gone.
  void drain() {
    draining_ = true;
    for (;;) {
      take();
      if (busy_.empty()) break;
      finish();
    }
    EXPECT_TRUE(open_.empty());
    check();
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }

  void submit() {
    auto ticket = small(std::string(1, "abcd"[below(4)]));
    if (below(8) == 0) ticket->request.key.clear();
    if (below(8) == 0) ticket->request.tenant = "t";
    const int id = next_++;
    open_[id] = ticket;
    ticket->done = [this, id](const Answer& answer) { answered(id, answer); };
    desk_.submit(ticket);
  }

  void answered(int id, const Answer& answer) {
    const auto found = open_.find(id);
    ASSERT_NE(found, open_.end()) << "answered twice";
    if (answer.how == observe::Answered::in_flight) {
      EXPECT_LE(found->second->give_up, expired_);
    }
    open_.erase(found);
    if (below(2) == 0 && !draining_) submit();
    if (below(8) == 0) take();
  }

  void take() {
    const auto ticket = desk_.take({});
    if (!ticket) return;
    const std::string flight = ticket->request.key + ' ' + ticket->request.tenant;
    if (ticket->request.is_guarded()) {
      EXPECT_TRUE(flights_.insert(flight).second) << "runs already";
    }
    busy_.emplace_back(ticket, flight);
  }

  void finish() {
    if (busy_.empty()) return;
    const std::size_t at = below(busy_.size());
    const auto [ticket, flight] = busy_[at];
    busy_.erase(busy_.begin() + static_cast<std::ptrdiff_t>(at));
    flights_.erase(flight);
    Answer answer = below(8) == 0 ? unavailable("") : drifted();
    if (below(8) == 0) answer.how = observe::Answered::executed;
    if (below(5) == 0)
      desk_.give_up(ticket, answer);
    else
      desk_.finish(ticket, {answer, fingerprint_of(ticket->request)});
  }

  void expire() {
    if (open_.empty()) return;
    auto one = open_.begin();
    std::advance(one, static_cast<std::ptrdiff_t>(below(open_.size())));
    expired_ = std::max(expired_, one->second->give_up);
    const auto now = one->second->give_up;
    desk_.expire(now);
    check();
  }

  void check() const {
    const Desk::Counts counts = desk_.counts();
    EXPECT_EQ(counts.queued + counts.waiting + busy_.size(), open_.size());
  }

  std::mt19937 random_;
  Desk desk_{6, std::chrono::minutes(1)};
  int next_ = 0;
  bool draining_ = false;
  Clock::time_point expired_{};
  std::map<int, std::shared_ptr<Ticket>> open_;  // not answered
  std::vector<std::pair<std::shared_ptr<Ticket>, std::string>> busy_;
  std::set<std::string> flights_;  // of those in busy_
};

TEST(Desk, AnswersEachTicketOnceInAnyOrder) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    AnyDesk any(seed);
    for (int i = 0; i < 60; ++i) any.step();
    any.drain();
    if (testing::Test::HasFailure()) return;
  }
}

std::vector<std::string> taken(Desk& desk, const BatchRule& rule) {
  std::vector<std::string> keys;
  for (const auto& ticket : desk.take({}, rule)) keys.push_back(ticket->request.key);
  return keys;
}

std::shared_ptr<Ticket> keyed_ticket(const std::string& key, std::size_t route = 0,
                                     std::size_t bytes = 1) {
  auto ticket = std::make_shared<Ticket>();
  ticket->request = {.body = std::string(bytes, 'x'), .route = route, .key = key};
  ticket->done = [](const Answer&) {};
  return ticket;
}

using Keys = std::vector<std::string>;

TEST(DeskBatch, ALaneTakesNoMoreThanItsShareOfWhatWaits) {
  Desk desk(10, std::chrono::minutes(1));
  const BatchRule two_lanes{2, [](const Request&) { return 16; }};
  for (const char* key : {"a", "b", "c", "d", "e"}) desk.submit(keyed_ticket(key));
  EXPECT_EQ(taken(desk, two_lanes), Keys({"a", "b", "c"}));
  EXPECT_EQ(taken(desk, two_lanes), Keys({"d"}));
  EXPECT_EQ(taken(desk, two_lanes), Keys({"e"}));
  EXPECT_EQ(taken(desk, two_lanes), Keys());
}

TEST(DeskBatch, OthersOfTheRouteAreTakenAndTheRestKeepsItsOrder) {
  Desk desk(10, std::chrono::minutes(1));
  const BatchRule rule{1, [](const Request& request) { return request.runs_alone ? 1 : 3; }};
  for (const char* key : {"a", "b", "c", "d", "e", "f"})
    desk.submit(keyed_ticket(key, *key == 'b' ? 1 : 0));
  const auto first = desk.take({}, rule);
  ASSERT_EQ(first.size(), 3U);  // a c d
  EXPECT_EQ(first[1]->request.key, "c");
  first[1]->request.runs_alone = true;
  desk.put_back(first[1]);
  EXPECT_EQ(taken(desk, rule), Keys({"c"}));
  EXPECT_EQ(taken(desk, rule), Keys({"b"}));
  EXPECT_EQ(taken(desk, rule), Keys({"e", "f"}));
}

TEST(DeskBatch, BodiesOfOneTransactionAreBounded) {
  Desk desk(10, std::chrono::minutes(1));
  const BatchRule rule{1, [](const Request&) { return 16; }};
  desk.submit(keyed_ticket("a", 0, 3 * BatchRule::kMostBytes));
  desk.submit(keyed_ticket("b", 0, BatchRule::kMostBytes / 2));
  desk.submit(keyed_ticket("c", 0, BatchRule::kMostBytes / 2));
  desk.submit(keyed_ticket("d"));
  EXPECT_EQ(taken(desk, rule), Keys({"a"}));
  EXPECT_EQ(taken(desk, rule), Keys({"b", "c"}));
  EXPECT_EQ(taken(desk, rule), Keys({"d"}));
}

// A lane that comes back later neither answers again nor lets it run again.
TEST(Desk, GivesUpWhatWaitsAndWhatLanesHave) {
  Desk desk(10, std::chrono::minutes(1));
  std::map<std::string, int> answers;
  const auto submitted = [&](const std::string& key) {
    auto ticket = ticket_of(key);
    ticket->done = [&answers, key](const Answer& answer) {
      answers[key] += answer.response.status;
    };
    desk.submit(ticket);
    return ticket;
  };
  const auto a = submitted("a"), b = submitted("b"), c = submitted("c"), same = submitted("a");
  ASSERT_EQ(desk.take({}), a);
  ASSERT_EQ(desk.take({}), b);
  desk.give_up_all(unavailable(""));
  EXPECT_EQ(answers, (std::map<std::string, int>{{"a", 2 * 503}, {"b", 503}, {"c", 503}}));
  EXPECT_EQ(a->request.key, "a") << "the lane reads it";
  desk.finish(a, {drifted(), {}});
  desk.put_back(b);
  EXPECT_EQ(desk.take({}), nullptr);
  const auto again = submitted("a");
  EXPECT_EQ(desk.take({}), again);
}

}  // namespace
}  // namespace hapax::gate
