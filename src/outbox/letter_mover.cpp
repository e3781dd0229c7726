#include "outbox/letter_mover.hpp"

#include <algorithm>
#include <utility>

#include "observe/log.hpp"
#include "outbox/letter_record.hpp"
#include "store/advice.hpp"
#include "store/message/publications.hpp"

namespace hapax::outbox {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAskLetters{1000};
constexpr milliseconds kLongest{5000};  // of a statement

}  // namespace

bool LetterMover::move(store::Session& session, milliseconds lease, const std::string& store_id,
                       const std::function<bool(const std::string&)>& is_empty) {
  const auto now = std::chrono::steady_clock::now();
  if (letters_.empty() || now < move_at_) return false;
  move_at_ = now + kAskLetters;
  bool any = false;
  for (const Portion& portion : portions(is_empty)) {
    if (std::chrono::steady_clock::now() - now > lease / 4) break;  // records wait for the relay
    // A longer statement would outlast the lease.
    if (move(session, std::min(kLongest, lease / 4), store_id, portion)) any = true;
  }
  return any;
}

std::vector<LetterMover::Portion> LetterMover::portions(
    const std::function<bool(const std::string&)>& is_empty) const {
  Portion together{.consumed = {}, .most = store::kMostLetters};
  std::vector<Portion> portions;
  for (const auto& [from, to] : letters_) {
    if (!is_empty(to)) continue;
    if (const auto failed = failed_.find(from); failed != failed_.end())
      portions.push_back({{from}, failed->second.most, failed->second.failures});
    else
      together.consumed.push_back(from);
  }
  if (!together.consumed.empty()) portions.push_back(std::move(together));
  // Each failure may take seconds, so there may be no time for all. Those that failed least come
  // first.
  std::ranges::sort(portions, {}, &Portion::failures);
  return portions;
}

bool LetterMover::move(store::Session& session, milliseconds longest, const std::string& store_id,
                       const Portion& portion) {
  const auto record_of = [&](const store::UnpublishedLetter& letter) {
    return letter_record(letter, letters_.at(letter.topic), group_, store_id);
  };
  try {
    const std::size_t count =
        store::move_letters(session, group_, portion.consumed, longest, record_of, portion.most);
    moved(portion, count);
    return count > 0;
  } catch (const store::DatabaseError& error) {
    if (store::may_be_a_lost_session(error.sqlstate())) throw;
    failed(portion, error.what(), "PostgreSQL refuses" + store::advice_on(error.sqlstate()));
  } catch (const std::exception& error) {  // a row that was edited by hand
    failed(portion, error.what(), "a letter cannot be read");
  }
  return false;
}

void LetterMover::moved(const Portion& portion, std::size_t count) {
  const bool all = count < portion.most;
  if (!all) look_again();
  const auto failed = failed_.find(portion.consumed.front());
  if (failed == failed_.end()) return;
  failed->second.most *= 2;
  if (all || failed->second.most >= store::kMostLetters) failed_.erase(failed);
}

// One of these letters cannot be moved. So the next look moves each topic alone, and at first one
// letter. Then letters of other topics, and letters before that one, go on.
void LetterMover::failed(const Portion& portion, const char* why, const std::string& sentence) {
  const bool is_alone = portion.consumed.size() == 1;
  move_at_ = std::chrono::steady_clock::now() + kAskLetters;  // records wait for the relay
  for (const std::string& topic : portion.consumed) {
    Failed& failed = failed_[topic];
    failed.most = 1;
    if (!is_alone || failed.failures++ > 0) continue;
    observe::log::warning(
        "dead_letters_delayed", {{"topic", topic}, {"error", why}},
        sentence + ": it and later ones of its topic are not published while this lasts");
  }
  if (!is_alone) look_again();
}

}  // namespace hapax::outbox
