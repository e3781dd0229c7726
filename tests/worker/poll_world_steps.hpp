// The part of the poll thread's world that does the steps of a schedule.
#pragma once

#include "poll_world.hpp"

namespace hapax::worker::poll_simulation {

inline void PollWorld::play(const Step& step) {
  now_ += std::chrono::milliseconds(1);
  const TopicPartition& id = ids_[step.who % ids_.size()];
  auto& lane = lanes_[step.who % lanes_.size()];
  Digits digits(step.draw);
  switch (step.kind) {
    case Kind::produce: produce(id, digits); break;
    case Kind::poll:
      for (unsigned count = 1 + digits.next(6); count > 0; --count) poll(id);
      break;
    case Kind::turn: turn(); break;
    case Kind::take: take(lane); break;
    case Kind::end: end(lane, digits); break;
    case Kind::wait: {
      constexpr std::array<int, 4> kTimes{5, 100, 600, 4000};
      now_ += std::chrono::milliseconds(kTimes[digits.next(4)]);
      tell("time passes");
      break;
    }
    case Kind::agree: agree(id); break;
    case Kind::checkpoint: keeper_.checkpoint(); break;
    case Kind::look: keeper_.look(); break;
    case Kind::answer: answer(digits); break;
    case Kind::assign: assign(id); break;
    case Kind::revoke: revoke(id, digits); break;
    case Kind::fence: fence(id, digits); break;
    case Kind::resume: resume(id); break;
    case Kind::fail: fail(id, digits); break;
    case Kind::remake: remake(id, digits); break;
  }
  check();
}

inline void PollWorld::produce(const TopicPartition& id, Digits digits) {
  Log& log = kafka_.logs.at(id);
  for (unsigned count = 1 + digits.next(8); count > 0; --count) {
    log.end += digits.next(8) == 7 ? 3 : 0;  // compaction leaves holes
    const unsigned key = ground_.hot ? 1 : digits.next(4);
    log.records.push_back({log.end, key == 0 ? "" : std::to_string(key), log.end, key});
    ++log.end;
  }
  log.end += digits.next(4) == 3 ? 1 : 0;  // a control record
  tell("the log of " + name(id) + " goes to " + std::to_string(log.end));
}

inline bool PollWorld::poll(const TopicPartition& id) {
  const auto partition = running(id);
  const auto before = read_before(partition);
  held_ = partition ? partition->progress().messages + 1 : 0;
  kafka::Event event = kafka_.next(id);
  if (std::holds_alternative<std::monostate>(event)) return false;
  std::optional<ReadRecord> read;
  const bool fails = std::holds_alternative<kafka::PartitionError>(event);
  if (const auto* const record = std::get_if<std::unique_ptr<kafka::Record>>(&event)) {
    const Message& message = (*record)->message();
    read = {keeper_.rows[id].generation, message.offset(), store::timestamp_ms(message),
            (*record)->bytes()};
    tell(name(id) + " offset " + std::to_string(read->offset) + " comes");
  }
  counted_ += read.has_value();
  poll_.serve(std::move(event));
  if (!partition) return true;
  hold(!fails || partition->over(), "what cannot be read does not halt " + name(id));
  if (fails) ++reached_["unreadable"];
  if (!read) return true;
  const bool rewritten = before && before->offset == read->offset && *before != *read;
  if (rewritten) ++reached_["a rewritten log"];
  if (before && before->offset == read->offset && !rewritten) ++reached_["a record read again"];
  hold(!rewritten || partition->over(), "a log that was rewritten is read on");
  if (partition->over()) return true;
  hold(partition->progress().next > read->offset, "a record is not taken: " + name(id));
  if (read->offset >= partition->beginning().offset) last_read_[id] = read;
  return true;
}

// What this worker read last, in the assignment before.
inline std::optional<ReadRecord> PollWorld::read_before(
    const std::shared_ptr<Partition>& partition) {
  if (!partition) return std::nullopt;
  const auto& before = read_before_.try_emplace(partition.get(), last_read_[partition->id()]);
  const auto& record = before.first->second;
  return record && record->generation == partition->beginning().generation ? record : std::nullopt;
}

inline void PollWorld::turn() {
  tell("turn");
  poll_.turn();
  counted_ = in_hand();
  for (const TopicPartition& id : ids_)
    hold(!running(id) || !keeper_.halt_of(id), name(id) + " goes on though it is halted");
  poll_.report({});
  watch_caution();
}

inline void PollWorld::take(std::optional<Batch>& lane) {
  if (lane) return;
  lane = dispatcher_.take_now(100, now_);
  if (!lane) return;
  check_caution(*lane);
  for (const Work& work : lane->works) {
    hold(!work.partition->over(), "a message of a partition that is over is handed out");
    tell("a lane takes " + name(work.partition->id()) + " offset " +
         std::to_string(work.items.front().record->message().offset()));
  }
}

inline void PollWorld::end(std::optional<Batch>& lane, Digits digits) {
  if (!lane) return;
  std::vector<Work> works = std::move(lane->works);
  lane.reset();
  for (Work& work : works) end(work, digits);
  dispatcher_.finish(std::move(works));
}

inline void PollWorld::end(Work& work, Digits& digits) {
  const unsigned drawn = digits.next(8);
  const std::size_t count = drawn < 6 ? work.items.size() : digits.next(2) % work.items.size();
  settle(work, count);
  if (count == work.items.size()) return;
  Item& next = *std::next(work.items.begin(), static_cast<std::ptrdiff_t>(count));
  if (drawn == 7) {
    next.not_before = now_ + std::chrono::hours(24);
    return halt(work, digits.next(2) == 1);
  }
  work.partition->count_handler_run();
  ++next.attempts;
  next.not_before = now_ + std::chrono::milliseconds(1 + 200 * digits.next(3));
  tell("a message of " + name(work.partition->id()) + " waits for its next try");
}

inline void PollWorld::settle(Work& work, std::size_t count) {
  const TopicPartition& id = work.partition->id();
  Truth& truth = truths_.at(work.partition.get());
  std::vector<Partition::Settled> settled;
  for (auto item = work.items.begin(); settled.size() < count; ++item) {
    const std::int64_t offset = item->record->message().offset();
    settled.push_back({offset, item->record->bytes()});
    truth.settled.insert(offset);
    if (truth.made == keeper_.rows[id].made) keeper_.rows[id].settled.insert(offset);
    work.partition->count_handler_run();
    tell(name(id) + " offset " + std::to_string(offset) + " is settled");
  }
  work.partition->settle(settled);
  work.settled = count;
}

inline void PollWorld::halt(Work& work, bool whole_route) {
  const TopicPartition& id = work.partition->id();
  tell("a lane asks for a halt of " + (whole_route ? id.first : name(id)));
  ++reached_[whole_route ? "halt of a route" : "halt"];
  const store::Halt halt{.topic = id.first,
                         .partition = id.second,
                         .whole_route = whole_route,
                         .offset = work.items.front().record->message().offset(),
                         .reason = "unknown_past"};
  notices_.post(HaltWanted{work.partition, halt, false});
}

inline bool PollWorld::agree(const TopicPartition& id) {
  if (!keeper_.agree(id)) return false;
  tell("the start of " + name(id) + " is looked at");
  if (const auto found = keeper_.held.find(id); found != keeper_.held.end())
    truths_.try_emplace(found->second.get(), Truth{keeper_.rows[id].made});
  return true;
}

inline void PollWorld::answer(Digits digits) {
  if (!kafka_.in_flight) return;
  const auto commits = *std::exchange(kafka_.in_flight, std::nullopt);
  constexpr std::array<kafka::CommitResult, 4> kResults{
      kafka::CommitResult::done, kafka::CommitResult::done, kafka::CommitResult::later,
      kafka::CommitResult::dropped};
  const auto result = kResults[digits.next(4)];
  if (result == kafka::CommitResult::done)
    for (const kafka::Commit& commit : commits)
      kafka_.logs.at(commit.partition).committed = commit.offset;
  ++reached_[result == kafka::CommitResult::done ? "committed" : "commit refused"];
  poll_.committed(commits, result, "");
}

inline void PollWorld::assign(const TopicPartition& id) {
  if (!kafka_.assigned.insert(id).second) return;
  tell(name(id) + " is assigned");
  poll_.assigned({id});
}

inline void PollWorld::revoke(const TopicPartition& id, Digits digits) {
  if (!kafka_.assigned.contains(id)) return;
  lost_ = digits.next(3) == 2;
  tell(name(id) + (lost_ ? " is lost" : " is revoked"));
  revoking_ = id;
  poll_.revoked({id}, lost_);
  revoking_.reset();
  hold(current(id) == nullptr, name(id) + " goes on though it was revoked");
  kafka_.forget(id);
  if (digits.next(2) == 1) keeper_.rows[id].started_runs = 2;  // owners after this one died
  if (digits.next(2) == 1) rewrite(id, digits);
}

inline void PollWorld::fence(const TopicPartition& id, Digits digits) {
  Row& row = keeper_.rows[id];
  row.epoch += 1 + digits.next(2);
  if (digits.next(2) == 1 && row.next > 0) row.next -= 1 + digits.next(3) % row.next;
  tell(name(id) + " is taken or moved, to " + std::to_string(row.next));
  ++reached_["fenced"];
}

inline void PollWorld::resume(const TopicPartition& id) {
  if (!keeper_.resume(id)) return;
  tell("the halt of " + name(id) + " is ended");
  ++reached_["resumed"];
}

inline void PollWorld::fail(const TopicPartition& id, Digits digits) {
  using Error = kafka::PartitionError::Kind;
  Log& log = kafka_.logs.at(id);
  if (!kafka_.fetched.contains(id)) return;
  constexpr std::array<Error, 4> kKinds{Error::refused, Error::unreadable, Error::out_of_range,
                                        Error::gone};
  const Error kind = kKinds[digits.next(4)];
  tell("the consumer has an error of " + name(id) + ", kind " +
       std::to_string(static_cast<int>(kind)));
  if (kind == Error::unreadable) {
    const auto next =
        std::ranges::lower_bound(log.records, kafka_.fetched.at(id), {}, &Logged::offset);
    if (next != log.records.end()) next->unreadable = true;
    return;
  }
  if (kind == Error::refused) kafka_.silent.insert(id);
  if (kind == Error::out_of_range) kafka_.stuck.insert(id);
  const auto partition = running(id);
  if (kind == Error::out_of_range) kafka_.fetched.erase(id);
  poll_.serve(kafka::Event(kafka::PartitionError{kind, id, -1, "ERROR", "text"}));
  if (partition) ++reached_["an error of the consumer"];
}

inline void PollWorld::remake(const TopicPartition& id, Digits digits) {
  if (digits.next(2) == 1) return rewrite(id, digits);
  Log& log = kafka_.logs.at(id);
  log = {.made = log.made + 1, .made_at = now_};
  tell("the topic of " + name(id) + " is made again");
  ++reached_["topic made again"];
}

// Only of a partition that is not fetched: a worker that reads on sees nothing of it.
inline void PollWorld::rewrite(const TopicPartition& id, Digits digits) {
  Log& log = kafka_.logs.at(id);
  if (running(id) || log.end == 0) return;
  const std::int64_t from = digits.next(16) % log.end;
  for (Logged& record : log.records) record.timestamp += record.offset >= from ? 1 : 0;
  tell("the log of " + name(id) + " is written again from " + std::to_string(from));
}

inline void PollWorld::finish() {
  constexpr int kFarTooMany = 2'000;
  tell("-- and to the end");
  for (int round = 0;; ++round) {
    hold(round < kFarTooMany, "it never ends");
    now_ += std::chrono::milliseconds(50);
    for (const TopicPartition& id : ids_) {
      assign(id);
      if (!current(id)) resume(id);
      agree(id);
      for (int count = 0; count < 20 && poll(id);) ++count;
    }
    turn();
    for (auto& lane : lanes_) {
      end(lane, Digits(0));
      take(lane);
    }
    keeper_.checkpoint();
    keeper_.look();
    answer(Digits(0));
    check();
    if (std::ranges::all_of(ids_, [&](const auto& id) { return is_done(id); })) break;
  }
}

}  // namespace hapax::worker::poll_simulation
