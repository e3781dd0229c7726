// Carries out orders about many dead letters, page by page, for `hapax dead` and the console.
//
// Each page is one transaction, oldest letters first. `letters` are looked up again for each page,
// so letters that were ended meanwhile are left out.
//
// Throws: Stop(kFailed) if PostgreSQL refuses, with the missing rights; OrderInDoubt if the
// connection ends; store::DatabaseError. The first two name the id up to which the order was
// carried out.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/operator/dead_letter_orders.hpp"

namespace hapax::app {

// Calls `order` with the ids of each page.
void for_each_page(store::Session& session, store::OpenLetters letters,
                   const std::function<void(const store::LetterIds&)>& order);

struct ReplayTally {
  // The caller may wait for these: ours, and those that were ordered before.
  store::LetterIds replays;
  std::size_t added = 0;
  store::Json wanted_before = store::Json::array();
  std::size_t ended = 0;
  store::LetterIds without_bytes;  // not replayed, because their messages were not kept
};
// `payload`: runs in place of the letter's own. Precondition: then there is one letter.
ReplayTally want_all(store::Session& session, const store::Order& order,
                     const store::OpenLetters& letters,
                     const std::optional<store::Replacement>& payload);

struct LetterTally {
  std::size_t changed = 0;
  std::size_t running = 0;                   // not changed, because a worker runs them
  std::size_t ended = 0;                     // ended by another operator meanwhile
  store::Json calls = store::Json::array();  // as store::Cancelled and store::Discarded have them
};
// A replay that carries out a decision about a call is cancelled only if `letters` names its id.
LetterTally cancel_all(store::Session& session, const store::Order& order,
                       const store::OpenLetters& letters);
LetterTally discard_all(store::Session& session, const store::Order& order,
                        const store::OpenLetters& letters);

// How many letters have them.
std::size_t letters_of(const store::Json& calls);
// The calls of all letters that an order means, before it is carried out.
store::Json calls_of(store::Session& session, const store::OpenLetters& letters);
// What to type about such calls, for people. Empty if there is none. With `ids`, a line for each.
std::vector<std::string> discard_lines(const store::Json& calls, bool ids);
std::vector<std::string> cancel_lines(const store::Json& calls, bool ids);

}  // namespace hapax::app
