#include "cli/letter_orders.hpp"

#include "cli/command.hpp"
#include "cli/operator.hpp"

namespace hapax::app {

void for_each_page(store::Session& session, store::OpenLetters letters,
                   const std::function<void(const store::LetterIds&)>& order) {
  try {
    for (store::Json page; !(page = store::page_of(session, letters)).empty();) {
      store::LetterIds ids;
      for (const store::Json& row : page) ids.push_back(row.at("id").get<std::int64_t>());
      order(ids);
      letters.above = ids.back();
    }
  } catch (const store::DatabaseError& error) {
    const std::string above = std::to_string(letters.above);
    throw_if_in_doubt(
        error, letters.above == 0 ? "" : " for letters above id " + above + "; up to there it was");
    if (error.fault().kind != store::Fault::Kind::sql) throw;
    throw Stop(kFailed, "PostgreSQL: " + std::string(error.what()) +
                            advice_after(error.fault(), kOperatorRights) + ". Letters above id " +
                            above + " were left alone");
  }
}

ReplayTally want_all(store::Session& session, const store::Order& order,
                     const store::OpenLetters& letters,
                     const std::optional<store::Replacement>& payload) {
  ReplayTally tally;
  for_each_page(session, letters, [&](const store::LetterIds& ids) {
    store::Wanted wanted = store::want_replays(session, order, ids, payload);
    tally.added += wanted.added.size();
    tally.ended += wanted.ended;
    tally.replays.insert(tally.replays.end(), wanted.added.begin(), wanted.added.end());
    tally.without_bytes.insert(tally.without_bytes.end(), wanted.without_bytes.begin(),
                               wanted.without_bytes.end());
    for (const store::Json& before : wanted.wanted_before) {
      tally.replays.push_back(before.at("id").get<std::int64_t>());
      tally.wanted_before.push_back(before);
    }
  });
  return tally;
}

LetterTally cancel_all(store::Session& session, const store::Order& order,
                       const store::OpenLetters& letters) {
  LetterTally tally;
  for_each_page(session, letters, [&](const store::LetterIds& ids) {
    const store::Cancelled done = store::cancel_replays(session, order, ids);
    tally.changed += done.letters.size();
    tally.running += done.running;
  });
  return tally;
}

LetterTally discard_all(store::Session& session, const store::Order& order,
                        const store::OpenLetters& letters) {
  LetterTally tally;
  for_each_page(session, letters, [&](const store::LetterIds& ids) {
    const store::Discarded done = store::discard(session, order, ids);
    tally.changed += done.letters.size();
    tally.running += done.running;
    tally.ended += done.ended;
  });
  return tally;
}

}  // namespace hapax::app
