#include "outbox/letter_mover.hpp"

#include <utility>

#include "observe/log.hpp"
#include "outbox/letter_record.hpp"
#include "store/message/publications.hpp"

namespace hapax::outbox {
namespace {

constexpr auto kAskLetters = std::chrono::seconds(1);

}  // namespace

LetterMover::Moved LetterMover::move(store::Session& session, const store::OutboxLease& lease,
                                     std::chrono::seconds time, const std::string& store_id,
                                     const std::function<bool(const std::string&)>& is_empty) {
  const auto now = std::chrono::steady_clock::now();
  if (letters_.empty() || now < move_at_) return Moved::none;
  move_at_ = now + kAskLetters;
  std::vector<Portion> portions{{{}, store::kMostLetters}};
  for (const auto& [from, to] : letters_) {
    if (!is_empty(to)) continue;
    if (const auto few = few_.find(from); few != few_.end())
      portions.push_back({{from}, few->second});
    else
      portions.front().consumed.push_back(from);
  }
  Moved moved = Moved::none;
  for (const Portion& portion : portions) {
    if (portion.consumed.empty()) continue;
    if (std::chrono::steady_clock::now() - now > time / 4) break;  // records wait for the relay
    const Moved more = move(session, lease, time, store_id, portion);
    if (more == Moved::lease_lost) return more;
    if (more == Moved::some) moved = more;
  }
  if (few_.empty()) said_.clear();
  return moved;
}

// If a letter cannot be moved, those of other topics go on without it, and those before it, too.
LetterMover::Moved LetterMover::move(store::Session& session, const store::OutboxLease& lease,
                                     std::chrono::seconds time, const std::string& store_id,
                                     const Portion& portion) {
  const auto record_of = [&](const store::UnpublishedLetter& letter) {
    return letter_record(letter, letters_.at(letter.topic), group_, store_id);
  };
  try {
    const auto moved =
        store::move_letters(session, lease, portion.consumed, time, record_of, portion.most);
    if (!moved) return Moved::lease_lost;
    const bool all = *moved < portion.most;
    if (!all) look_again();
    for (const std::string& from : portion.consumed)
      if (const auto few = few_.find(from); few != few_.end())
        if (all || (few->second *= 2) >= store::kMostLetters) few_.erase(few);
    return *moved == 0 ? Moved::none : Moved::some;
  } catch (const store::DatabaseError& error) {
    if (error.sqlstate().empty() || error.sqlstate().starts_with("57P")) throw;
    wait(error.what());
  } catch (const std::exception& error) {  // a row that was edited by hand
    wait(error.what());
  }
  for (const std::string& from : portion.consumed) few_[from] = 1;
  return Moved::none;
}

void LetterMover::wait(const char* why) {
  if (std::exchange(said_, why).empty())
    observe::log::warning(
        "dead_letters_delayed", {{"error", why}},
        "PostgreSQL refuses (does the worker's role have its rights? sql/roles.sql), or a "
        "letter cannot be read: it and later ones of its topic are not published while this lasts");
}

}  // namespace hapax::outbox
