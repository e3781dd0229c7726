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
  std::vector<std::string> consumed;
  for (const auto& [from, to] : letters_)
    if (is_empty(to)) consumed.push_back(from);
  if (consumed.empty()) return Moved::none;
  const auto record_of = [&](const store::UnpublishedLetter& letter) {
    return letter_record(letter, letters_.at(letter.topic), group_, store_id);
  };
  try {
    const auto moved = store::move_letters(session, lease, consumed, time, record_of);
    if (!moved) return Moved::lease_lost;
    said_.clear();
    if (*moved == store::kMostLetters) look_again();
    return *moved == 0 ? Moved::none : Moved::some;
  } catch (const store::DatabaseError& error) {
    if (error.sqlstate().empty() || error.sqlstate().starts_with("57P")) throw;
    wait(error.what());
  } catch (const std::exception& error) {  // a row that was edited by hand
    wait(error.what());
  }
  return Moved::none;
}

void LetterMover::wait(const char* why) {
  if (std::exchange(said_, why).empty())
    observe::log::warning(
        "dead_letters_delayed", {{"error", why}},
        "PostgreSQL refuses (does the worker's role have its rights? sql/roles.sql), or a "
        "letter cannot be read: dead letters are not published while this lasts");
}

}  // namespace hapax::outbox
