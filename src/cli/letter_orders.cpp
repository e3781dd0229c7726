#include "cli/letter_orders.hpp"

#include <set>

#include "cli/command.hpp"
#include "cli/operator.hpp"
#include "cli/output.hpp"

namespace hapax::app {
namespace {

// How `hapax outside decide` takes the key.
std::string key_words(const store::Json& call) {
  const std::string tenant = call.at("tenant");
  return shell_word(call.at("key")) + " --scope " + shell_word(call.at("scope")) +
         (tenant.empty() ? "" : " --tenant " + shell_word(tenant));
}

}  // namespace

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
                            advice_after(error.fault(), operator_rights()) + ". Letters above id " +
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
    const store::Cancelled done = store::cancel_replays(session, order, ids, !letters.ids.empty());
    tally.changed += done.letters.size();
    tally.running += done.running;
    tally.calls.insert(tally.calls.end(), done.calls.begin(), done.calls.end());
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
    tally.calls.insert(tally.calls.end(), done.calls.begin(), done.calls.end());
  });
  return tally;
}

std::size_t letters_of(const store::Json& calls) {
  std::set<std::int64_t> letters;
  for (const store::Json& call : calls) letters.insert(call.at("dead_letter").get<std::int64_t>());
  return letters.size();
}

store::Json calls_of(store::Session& session, const store::OpenLetters& letters) {
  store::Json calls = store::Json::array();
  for_each_page(session, letters, [&](const store::LetterIds& ids) {
    const store::Json found = store::read_calls_of(session, ids);
    calls.insert(calls.end(), found.begin(), found.end());
  });
  return calls;
}

std::vector<std::string> discard_lines(const store::Json& calls, bool ids) {
  if (calls.empty()) return {};
  if (!ids)
    return {"left alone: " + std::to_string(letters_of(calls)) +
            ", as their calls to the outside are not done. `hapax outside list --status all` shows "
            "them; first decide about each with `hapax outside decide`"};
  std::vector<std::string> lines;
  for (const store::Json& call : calls) {
    const std::string letter = cell(call.at("dead_letter"));
    lines.push_back(call.at("open") == true
                        ? "dead letter " + letter + " is left alone: its call to the outside is `" +
                              cell(call.at("status")) + "`. First decide: hapax outside decide " +
                              key_words(call) + ", with --happened or --did-not-happen. " +
                              "With --give-up that ends the letter, too"
                        : "dead letter " + letter +
                              " is left alone: its replay calls again, as an operator decided. "
                              "First cancel that: hapax dead replay " +
                              letter + " --cancel");
  }
  return lines;
}

std::vector<std::string> cancel_lines(const store::Json& calls, bool ids) {
  if (calls.empty()) return {};
  if (!ids)
    return {"left alone: " + std::to_string(letters_of(calls)) +
            ", as they end calls to the outside. To cancel one all the same, name its letter's id"};
  std::vector<std::string> lines;
  for (const store::Json& call : calls) {
    const std::string letter = cell(call.at("dead_letter"));
    lines.push_back(
        call.at("status") == "answered"
            ? "dead letter " + letter +
                  ": without its replay the answer is not booked. Decide again: hapax " +
                  "outside decide " + key_words(call) + ", with --happened or --give-up"
            : "dead letter " + letter +
                  ": without its replay the call is not made again, though an " +
                  "operator decided that. To make it: hapax dead replay " + letter +
                  (call.at("edited") == true ? ", with the same --payload" : ""));
  }
  return lines;
}

}  // namespace hapax::app
