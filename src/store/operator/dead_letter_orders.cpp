#include "store/operator/dead_letter_orders.hpp"

#include <algorithm>
#include <limits>

#include "sql_statements.hpp"
#include "store/operator/json_rows.hpp"
#include "store/quote.hpp"
#include "store/transaction.hpp"

namespace hapax::store {
namespace {

std::string array_of(const LetterIds& ids) {
  std::string text = "{";
  for (const std::int64_t id : ids) text += (text.size() > 1 ? "," : "") + std::to_string(id);
  return text + "}";
}

LetterIds ids_of(const Rows& rows, std::string_view column) {
  LetterIds ids;
  for (const Row row : rows) ids.push_back(row[column].as<std::int64_t>());
  return ids;
}

// Those that are open, locked.
Rows lock_rows(Transaction& transaction, const LetterIds& letters) {
  transaction.add("SET LOCAL synchronous_commit = on");
  return transaction.run(sql::kLockOpenDeadLetters, {array_of(letters)});
}

LetterIds lock_open(Transaction& transaction, const LetterIds& letters) {
  return ids_of(lock_rows(transaction, letters), "id");
}

// Leaves those out of `letters` that have a call in `calls`.
void leave_out(LetterIds& letters, const Json& calls) {
  for (const Json& call : calls) std::erase(letters, call.at("dead_letter").get<std::int64_t>());
}

Json calls_of(Transaction& transaction, const LetterIds& letters) {
  return json_of_rows<Json>(transaction.run(sql::kReadCallsOfLetters, {array_of(letters)}));
}

void log_order(Transaction& transaction, const Order& order, const char* action,
               const LetterIds& letters, Json facts) {
  facts["dead_letters"] = letters;
  transaction.run(
      sql::kInsertOperatorLog,
      {order.who, action, order.group + " dead letters: " + std::to_string(letters.size()),
       order.why, facts.dump()});
}

}  // namespace

Json page_of(Session& session, const OpenLetters& wanted) {
  const auto last = wanted.up_to.value_or(std::numeric_limits<std::int64_t>::max());
  const Parameter ids = wanted.ids.empty() ? Parameter(nullptr) : Parameter(array_of(wanted.ids));
  Transaction transaction(session);
  return json_of_rows<Json>(transaction.run(
      sql::kPageOpenDeadLetters,
      {wanted.group, wanted.above, last, ids, Parameter(wanted.topic), Parameter(wanted.handler),
       Parameter(wanted.reason), Parameter(wanted.error), seconds_or_null(wanted.since),
       seconds_or_null(wanted.until), Parameter(wanted.key), Parameter(wanted.scope),
       Parameter(wanted.tenant), wanted.takes_skipped(), kLettersAtOnce}));
}

Wanted want_replays(Session& session, const Order& order, const LetterIds& letters,
                    const std::optional<Replacement>& instead) {
  Transaction transaction(session);
  Wanted wanted;
  const Rows rows = lock_rows(transaction, letters);
  wanted.ended = letters.size() - rows.size();
  LetterIds open;
  for (const Row row : rows) {
    const bool has_nothing_to_run = !instead && row["without_bytes"].as<bool>();
    (has_nothing_to_run ? wanted.without_bytes : open).push_back(row["id"].as<std::int64_t>());
  }
  wanted.wanted_before = Json::array();
  LetterIds ordered;
  // The insert waits for a replay that ends now. One that ends behind the insert is in neither
  // answer, so the next round adds one.
  while (!open.empty()) {
    const Rows added = transaction.run(
        sql::kInsertReplays, {array_of(open), order.who, order.why, instead.has_value(),
                              instead ? Parameter::bytes(instead->payload) : Parameter(nullptr)});
    for (const Row row : added) {
      wanted.added.push_back(row["id"].as<std::int64_t>());
      ordered.push_back(row["dead_letter"].as<std::int64_t>());
      std::erase(open, ordered.back());
    }
    for (Json& before :
         json_of_rows<Json>(transaction.run(sql::kReadOpenReplays, {array_of(open)}))) {
      std::erase(open, before.at("dead_letter").get<std::int64_t>());
      wanted.wanted_before.push_back(std::move(before));
    }
  }
  if (!ordered.empty())
    log_order(transaction, order, "dead replay", ordered,
              {{"replays", wanted.added}, {"edited", instead.has_value()}});
  transaction.commit();
  return wanted;
}

Json read_calls_of(Session& session, const LetterIds& letters) {
  Transaction transaction(session);
  return calls_of(transaction, letters);
}

Cancelled cancel_replays(Session& session, const Order& order, const LetterIds& letters,
                         bool decided) {
  Transaction transaction(session);
  Cancelled cancelled;
  LetterIds open = lock_open(transaction, letters);
  Json calls = Json::array();
  for (Json& call : calls_of(transaction, open))
    if (call.at("decided") == true) calls.push_back(std::move(call));
  if (!decided) leave_out(open, calls);
  cancelled.letters =
      ids_of(transaction.run(sql::kCancelReplays, {array_of(open), order.who + ": " + order.why}),
             "dead_letter");
  cancelled.running = transaction.run(sql::kReadOpenReplays, {array_of(open)}).size();
  cancelled.calls = Json::array();
  for (Json& call : calls) {
    const auto letter = call.at("dead_letter").get<std::int64_t>();
    const bool is_done = std::ranges::find(cancelled.letters, letter) != cancelled.letters.end();
    if (is_done == decided) cancelled.calls.push_back(std::move(call));
  }
  if (!cancelled.letters.empty())
    log_order(transaction, order, "dead replay --cancel", cancelled.letters, Json::object());
  transaction.commit();
  return cancelled;
}

Discarded discard(Session& session, const Order& order, const LetterIds& letters) {
  Transaction transaction(session);
  Discarded discarded;
  LetterIds open = lock_open(transaction, letters);
  discarded.ended = letters.size() - open.size();
  discarded.calls = calls_of(transaction, open);
  leave_out(open, discarded.calls);
  const Rows cancelled = transaction.run(
      sql::kCancelReplays,
      {array_of(open), "the dead letter was discarded by " + order.who + ": " + order.why});
  discarded.letters = ids_of(
      transaction.run(sql::kDiscardDeadLetters, {array_of(open), order.who, order.why}), "id");
  discarded.running = open.size() - discarded.letters.size();
  if (!discarded.letters.empty())
    log_order(transaction, order, "dead discard", discarded.letters,
              {{"cancelled_replays_of", ids_of(cancelled, "dead_letter")}});
  transaction.commit();
  return discarded;
}

Json read_progress(Session& session, const LetterIds& replays, std::chrono::seconds longest_run) {
  Transaction transaction(session);
  return json_of_rows<Json>(
      transaction.run(sql::kReadReplayProgress, {array_of(replays), longest_run.count()}));
}

}  // namespace hapax::store
