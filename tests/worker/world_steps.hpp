// The part of the world that carries out a schedule's steps.
#pragma once

#include "world.hpp"

namespace hapax::worker::simulation {

inline World::World(const Ground& ground, observe::Metrics& metrics)
    : routes_(2),
      postgres_(health_, metrics, {}),
      setup_{text_, text_, {}, dispatcher_, notices_, postgres_, metrics, {}, {}},
      sites_{{{"payments", 0}, 0}, {{"payments", 1}, 0}, {{"orders", 0}, 1}},
      lanes_(ground.lanes),
      reference_(ground.batch),
      hot_(ground.hot),
      given_up_(2) {
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    routes_[i].topic = i == 0 ? "payments" : "orders";
    routes_[i].batch = ground.batch[i];
    routes_[i].breaker = ground.breaker;
    setup_.route_metrics.push_back(metrics.route(routes_[i].topic, text_));
    setup_.breakers.emplace_back(ground.breaker);
  }
  setup_.settled = [this](const Message& message) { said_settled_.push_back(message.offset()); };
  for (std::size_t i = 0; i < ground.lanes; ++i) settlers_.emplace_back(setup_);
  for (Site& site : sites_) assign(site);
}

inline void World::play(const Step& step) {
  Site& site = sites_[step.who % sites_.size()];
  Player& lane = lanes_[step.who % lanes_.size()];
  Digits digits(step.draw);
  switch (step.kind) {
    case Kind::arrive: arrive(site, digits); break;
    case Kind::take: {
      constexpr std::array<std::size_t, 4> kLimits{1, 10000, 2, 3};
      take(lane, kLimits[digits.next(4)]);
      break;
    }
    case Kind::next: prefetch(lane); break;
    case Kind::end: end(lane, digits); break;
    case Kind::wait:
      now_ += milliseconds(1 + digits.next(3) * 100 + digits.next(2) * digits.next(1000));
      tell("the clock says " + std::to_string((now_ - kStart) / milliseconds(1)) + " ms");
      break;
    case Kind::serve: serve(); break;
    case Kind::revoke:
      if (!site.partition) break;
      tell(reference_.of(*site.partition).name + " is revoked");
      if (digits.next(2) == 0) write_checkpoint(site);
      drop(site);
      break;
    case Kind::assign:
      if (!site.partition) assign(site);
      break;
    case Kind::cautious:
      if (!site.partition) break;
      reference_.set_cautious(site.partition.get());
      dispatcher_.set_cautious({site.partition});
      tell("one at a time from now on, " + reference_.of(*site.partition).name + " first");
      break;
    case Kind::trusting:
      reference_.set_cautious(nullptr);
      dispatcher_.set_cautious({});
      tell("no longer one at a time");
      break;
    case Kind::checkpoint:
      if (site.partition) write_checkpoint(site);
      break;
    case Kind::back: lane.postgres_away = false; break;
    case Kind::pass:
      if (!site.partition || site.fetched < site.log.size()) break;
      site.end += digits.next(3);
      site.partition->pass(site.end);
      reference_.pass(*site.partition, site.end);
      break;
    case Kind::stop:
      tell("stop");
      dispatcher_.stop();
      reference_.stopped = true;
      break;
  }
  check();
}

inline void World::arrive(Site& site, Digits digits) {
  for (unsigned count = 1 + digits.next(6); count > 0; --count) {
    const unsigned order_key = hot_ ? 0 : digits.next(5);
    site.end += digits.next(8) == 7 ? 3 : 0;  // compaction leaves holes
    site.log.push_back({site.end++, order_key < 4 ? order_key : ++unordered_});
    tell(site.id.first + "/" + std::to_string(site.id.second) + " offset " +
         std::to_string(site.log.back().offset) + " arrives, order key " +
         std::to_string(site.log.back().order_key));
  }
  if (digits.next(8) == 7) site.fetched = 0;  // Kafka delivers all of it again
  if (site.partition) deliver(site);
}

// As Worker::receive does.
inline void World::deliver(Site& site) {
  Assignment& assignment = reference_.of(*site.partition);
  for (; site.fetched < site.log.size(); ++site.fetched) {
    const auto [offset, order_key] = site.log[site.fetched];
    const std::string payload(static_cast<std::size_t>(offset % 5), 'x');
    Item item;
    item.record = kafka::Record::copy(
        Message::Parts{.coordinates = {site.id.first, site.id.second, offset}, .payload = payload});
    const std::size_t bytes = item.record->bytes();
    const bool expected = offset >= assignment.next;
    hold(site.partition->receive(offset, bytes) == expected,
         assignment.name + " offset " + std::to_string(offset) +
             (expected ? " is not taken" : " is taken twice"));
    ++reached_[expected ? "received" : "in hand already"];
    if (!expected) continue;
    const Fact& prior = site.ahead[offset];
    item.attempts = prior.attempts;
    item.not_before = prior.next_try;
    reference_.receive(*site.partition, {offset, order_key, bytes, prior.attempts, 0, 0,
                                         prior.next_try, prior.next_try});
    dispatcher_.add(site.partition, order_key, std::move(item));
  }
}

inline void World::take(Player& lane, std::size_t limit) {
  if (lane.batch || lane.postgres_away) return;
  std::optional<Batch> batch = dispatcher_.take_now(limit, now_);
  if (batch) {
    std::string line = name(lane) + " takes";
    for (const Work& work : batch->works)
      for (const Item& item : work.items)
        line += " " + reference_.of(*work.partition).name + ":" +
                std::to_string(item.record->message().offset());
    tell(line);
    ++reached_[batch->cautious ? "taken in caution" : "taken"];
    if (batch->works.size() > 1) ++reached_["several order keys in a batch"];
    if (batch->works.front().items.size() > 1) ++reached_["several of an order key in a batch"];
  } else if (reference_.is_cautious() && reference_.running() > 0) {
    ++reached_["refused in caution"];
  }
  reference_.take(batch, limit, now_);
  lane.batch = std::move(batch);
}

inline void World::prefetch(Player& lane) {
  if (!lane.batch || lane.next || lane.batch->cautious) return;
  const Work& current = lane.batch->works.front();
  if (lane.batch->works.size() > 1 || current.items.size() > 1) return;
  lane.next = dispatcher_.prefetch(current, now_);
  reference_.prefetch(current, lane.next, now_);
  if (!lane.next) return;
  const bool own =
      lane.next->partition == current.partition && lane.next->order_key == current.order_key;
  ++reached_[own ? "goes on with its own order key" : "goes on with another order key"];
  tell(name(lane) + " takes " + reference_.of(*lane.next->partition).name + ":" +
       std::to_string(lane.next->items.front().record->message().offset()) + " to go on with");
}

// As Lane::run_batch does.
inline void World::end(Player& lane, Digits digits) {
  if (!lane.batch) return;
  Batch batch = std::move(*lane.batch);
  lane.batch.reset();
  const std::vector<flow::Outcome> outcomes = draw_outcomes(batch, digits);
  if (lane.next && flow::is_settled(outcomes.front().result) && !lane.next->partition->over()) {
    lane.batch.emplace().works.push_back(std::move(*lane.next));
  } else if (lane.next) {
    tell(name(lane) + " puts back what it would have gone on with");
    ++reached_["put back"];
    reference_.put_back(*lane.next);
    std::vector<Work> unrun;
    unrun.push_back(std::move(*lane.next));
    dispatcher_.finish(std::move(unrun));
  }
  lane.next.reset();
  settle(lane, batch.works, outcomes);
  dispatcher_.finish(std::move(batch.works));
}

// Outcomes that a Processor may return. It stops at an outage or a lost connection. It does not run
// messages after an unsettled one of the same order key.
inline std::vector<flow::Outcome> World::draw_outcomes(const Batch& batch, Digits digits) {
  std::vector<flow::Outcome> outcomes;
  bool given_up = false;
  for (const Work& work : batch.works) {
    bool blocked = false;
    for (const Item& item : work.items) {
      Fact& fact = site_of(*work.partition).facts[item.record->message().offset()];
      flow::Breaker& breaker = setup_.breakers[work.partition->route_index()];
      flow::Outcome outcome = flow::Outcome::of(flow::Result::waits);
      if (breaker.is_open())
        outcome = flow::held();
      else if (!blocked && !given_up)
        outcome = draw_outcome(fact, digits);
      if (outcome.reason == "breaker") ++reached_["held back by the breaker"];
      breaker.learn(outcome);
      blocked = blocked || !flow::is_settled(outcome.result);
      given_up = given_up || outcome.result == flow::Result::outage || outcome.lost_in_handler;
      outcomes.push_back(outcome);
    }
  }
  return outcomes;
}

inline flow::Outcome World::draw_outcome(Fact& fact, Digits& digits) {
  using flow::Result;
  if (fact.contended > 0) {
    --fact.contended;
    return {.result = Result::again};
  }
  const unsigned drawn = digits.next(16);
  if (fact.settled && drawn < 9) {
    if (fact.given_up) return {.result = Result::failed, .reason = "redelivered"};
    return {.result = Result::duplicate};
  }
  switch (drawn) {
    case 6: return {.result = Result::skipped};
    case 7:
    case 8:
      fact.given_up = true;
      if (digits.next(4) == 0) return {.result = Result::failed, .reason = "missing_key"};
      return {.result = Result::failed,
              .reason = "rejected",
              .detail = (digits.next(4) == 0 ? "no such currency " : "no account ") +
                        std::to_string(story_.size())};
    case 9:
    case 10:
    case 11:
      return {.result = Result::retry,
              .wait = milliseconds(1 + 200 * digits.next(3)),
              .attempts = fact.attempts + 1};
    case 12:
      if (digits.next(6) == 5) fact.contended = kContended;
      return {.result = Result::again, .lost_in_handler = digits.next(2) == 1};
    case 13: return {.result = Result::busy, .wait = milliseconds(50)};
    case 14: return {.result = Result::outage, .sqlstate = digits.next(2) == 0 ? "" : "53100"};
    case 15:
      return {.result = digits.next(3) == 2 ? Result::halt_route : Result::halt_partition,
              .reason = "unknown_past"};
    default: return {.result = Result::completed};
  }
}

// What PostgreSQL knows of them by now.
inline void World::remember(const Player& lane, const Work& work,
                            std::span<const flow::Outcome> outcomes) {
  Site& site = site_of(*work.partition);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const std::int64_t offset = offset_of(work, i);
    Fact& fact = site.facts[offset];
    if (flow::is_settled(outcomes[i].result)) {
      fact.settled = true;
    } else if (outcomes[i].result == flow::Result::retry) {
      fact.attempts = outcomes[i].attempts;
      fact.next_try = now_ + outcomes[i].wait;
    }
    std::string line = name(lane) + ": " + reference_.of(*work.partition).name + ":" +
                       std::to_string(offset) + " " + flow::name_of(outcomes[i].result);
    if (outcomes[i].wait.count() > 0)
      line += ", waits " + std::to_string(outcomes[i].wait.count()) + " ms";
    tell(line);
  }
}

inline void World::settle(Player& lane, std::span<Work> works,
                          std::span<const flow::Outcome> outcomes) {
  std::vector<std::int64_t> settled;
  bool postgres_away = false;
  auto rest = outcomes;
  for (const Work& work : works) {
    const auto of_work = rest.first(work.items.size());
    rest = rest.subspan(work.items.size());
    remember(lane, work, of_work);
    const Reference::Ended ended = expect_end(work, of_work);
    settled.insert(settled.end(), ended.settled.begin(), ended.settled.end());
    postgres_away = postgres_away || ended.postgres_away;
  }
  said_settled_.clear();
  const auto number = static_cast<std::size_t>(&lane - lanes_.data());
  const bool away = settlers_[number].settle(works, outcomes, now_);
  hold(away == postgres_away, "a lane does not know that PostgreSQL is away");
  hold(said_settled_ == settled, "others are said to be settled than those that are");
  lane.postgres_away = lane.postgres_away || away;
}

// As Worker::serve(HaltWanted) does.
inline void World::serve() {
  std::vector<Wanted> found;
  for (const Notice& notice : notices_.take()) {
    const auto& wanted = std::get<HaltWanted>(notice);
    found.push_back({wanted.partition.get(), wanted.halt.whole_route, wanted.halt.offset});
    hold(wanted.halt.whole_route || wanted.halt.offset, "a halt of nothing");
    Site& its = site_of(*wanted.partition);
    const bool is_its = its.partition == wanted.partition;
    if (!is_its && !wanted.halt.whole_route) continue;
    ++reached_["halt"];
    for (Site& site : sites_) {
      const bool meant =
          (&site == &its && is_its) || (wanted.halt.whole_route && site.route == its.route);
      if (!meant || !site.partition) continue;
      tell(reference_.of(*site.partition).name + " halts");
      drop(site);
    }
  }
  hold(found == wanted_, "other halts are asked for than must be");
  wanted_.clear();
}

inline void World::assign(Site& site) {
  site.partition = std::make_shared<Partition>(site.id, routes_[site.route], site.route);
  partitions_.push_back(site.partition);
  Beginning beginning;
  beginning.offset = site.checkpoint;
  site.partition->begin(beginning);
  setup_.breakers[site.route].close();
  given_up_[site.route].open = false;
  const std::string name = site.id.first + "/" + std::to_string(site.id.second) + "#" +
                           std::to_string(partitions_.size());
  reference_.assign(site.partition.get(), {name, site.route, site.checkpoint, site.checkpoint});
  site.ahead = site.facts;
  site.fetched = 0;  // what is below the checkpoint is not taken
  tell(name + " is assigned from " + std::to_string(site.checkpoint));
  deliver(site);
}

inline void World::drop(Site& site) {
  dispatcher_.drop(*site.partition);
  reference_.drop(*site.partition);
  site.partition.reset();
}

inline void World::write_checkpoint(Site& site) {
  const std::int64_t watermark = site.partition->progress().watermark;
  hold(watermark >= site.checkpoint, "a checkpoint goes back");
  for (const Logged& record : site.log)
    hold(record.offset >= watermark || site.facts[record.offset].settled,
         site.id.first + "/" + std::to_string(site.id.second) + " offset " +
             std::to_string(record.offset) + " is lost: a checkpoint passes it");
  site.checkpoint = watermark;
  tell(reference_.of(*site.partition).name + " has its checkpoint at " + std::to_string(watermark));
}

inline void World::finish() {
  constexpr int kFarTooMany = 10'000;
  tell("-- and to the end");
  serve();
  if (reference_.stopped)
    for (Site& site : sites_)
      if (site.partition) drop(site);
  for (Site& site : sites_)
    if (!site.partition && !reference_.stopped) assign(site);
  reference_.set_cautious(nullptr);
  dispatcher_.set_cautious({});
  for (int turn = 0;; ++turn) {
    hold(turn < kFarTooMany, "it never ends");
    bool moved = false;
    for (Player& lane : lanes_) {
      moved = moved || lane.batch;
      end(lane, Digits(0));
      lane.postgres_away = false;
      take(lane, 10'000);
    }
    check();
    for (const Player& lane : lanes_) moved = moved || lane.batch;
    if (moved) continue;
    const Time due = reference_.next_due();
    if (due == Time::max()) break;
    now_ = std::max(now_, due);
  }
  hold(notices_.take().empty() && wanted_.empty(), "a halt is asked for that nobody wants");
  const Dispatcher::Load load = dispatcher_.load();
  hold(load.queued == 0 && load.waiting == 0, "something is left over");
  for (Site& site : sites_)
    if (!reference_.stopped) {
      write_checkpoint(site);
      const bool all = site.log.empty() || site.checkpoint > site.log.back().offset;
      hold(all, "a message never ran");
    }
  ++reached_[reference_.stopped ? "stopped" : "went to the end"];
}

inline World::Site& World::site_of(const Partition& partition) {
  return *std::ranges::find(sites_, partition.id(), &Site::id);
}

inline std::string World::name(const Player& lane) const {
  return "lane " + std::to_string(&lane - lanes_.data());
}

}  // namespace hapax::worker::simulation
