#include "store/message/replays.hpp"

#include "sql_statements.hpp"
#include "store/quote.hpp"
#include "store/worker/retention.hpp"

namespace hapax::store {
namespace {

TimestampType timestamp_type_of(const std::string& name) {
  if (name == "create_time") return TimestampType::create_time;
  if (name == "log_append_time") return TimestampType::log_append_time;
  return TimestampType::none;
}

double seconds_of(std::chrono::milliseconds time) {
  return static_cast<double>(time.count()) / 1000.0;
}

Parameter null_if_empty(const std::string& text) {
  return text.empty() ? Parameter(nullptr) : Parameter(text);
}

}  // namespace

std::size_t count_open_replays(Session& session, const std::string& group) {
  constexpr int kMostReplaysCounted = 10'000;
  Transaction transaction(session);
  return transaction.run(sql::kCountOpenReplays, {group, kMostReplaysCounted})[0][0]
      .as<std::size_t>();
}

std::optional<ClaimedReplay> claim_replay(Session& session, const std::string& group,
                                          const std::vector<std::string>& topics,
                                          const std::string& worker, std::chrono::seconds lease) {
  std::string array = "{";
  for (const std::string& topic : topics) append_array_element(array, topic);
  Transaction transaction(session);
  const Rows rows = transaction.run(sql::kClaimReplay, {group, array + "}", worker, lease.count()});
  if (rows.empty()) return std::nullopt;
  transaction.commit();
  return ClaimedReplay{.id = rows[0]["id"].as<std::int64_t>(),
                       .dead_letter = rows[0]["dead_letter"].as<std::int64_t>(),
                       .topic = rows[0]["topic"].text(),
                       .runs = rows[0]["runs"].as<int>(),
                       .abandoned = rows[0]["abandoned"].as<bool>()};
}

void extend_replay(Session& session, const ClaimedReplay& replay, std::chrono::seconds lease) {
  Transaction transaction(session);
  transaction.add(session.execute(sql::kExtendReplay, {replay.id, replay.runs, lease.count()}));
  transaction.commit();
}

std::optional<ReplayedLetter> lock_replay(Transaction& transaction, const ClaimedReplay& replay) {
  using Text = std::optional<std::string>;
  const Rows rows = transaction.run(sql::kLockReplay, {replay.id, replay.runs});
  if (rows.empty()) return std::nullopt;
  const Row row = rows[0];
  ReplayedLetter letter;
  letter.source = {.group = row["group_id"].text(),
                   .topic = row["topic"].text(),
                   .generation = row["generation"].as<std::int32_t>(),
                   .partition = row["partition"].as<std::int32_t>(),
                   .offset = row["kafka_offset"].as<std::int64_t>()};
  letter.timestamp_ms = row["message_timestamp"].as<std::optional<std::int64_t>>().value_or(-1);
  letter.timestamp_type = timestamp_type_of(row["timestamp_type"].text());
  letter.record_key = bytes_of_hex(row["message_key"]);
  letter.payload = bytes_of_hex(row["payload"]);
  letter.headers = letter_headers_of(row["headers"]);
  letter.edited = row["edited"].as<bool>();
  letter.scope = row["scope"].text();
  letter.key = row["key"].as<Text>();
  letter.tenant = row["tenant"].as<Text>();
  letter.discarded = !row["ended_as"].is_null();
  letter.without_bytes = row["without_bytes"].as<bool>();
  return letter;
}

bool keys_are_kept(Transaction& transaction, const ClaimedReplay& replay, const std::string& scope,
                   std::chrono::seconds retention, bool by_position) {
  const std::string forgotten = forgotten_until(transaction, scope);
  return transaction
      .run(sql::kKeysAreKept, {replay.dead_letter, retention.count(), forgotten, by_position})[0][0]
      .as<bool>();
}

void share_partition(Transaction& transaction, const Source& source) {
  transaction.run(sql::kSharePartition, {source.group, source.topic, source.partition});
}

void settle_replayed(Transaction& transaction, const Source& source) {
  transaction.run(sql::kSettleReplayed, source.parameters());
}

bool may_have_run_since(Transaction& transaction, const ClaimedReplay& replay) {
  return transaction.run(sql::kMayHaveRunSince, {replay.dead_letter})[0]["may"].as<bool>();
}

bool keeps_calls_of_replays(Transaction& transaction) {
  return !transaction
              .run(
                  "SELECT FROM pg_attribute WHERE attrelid = to_regclass('hapax.replays') "
                  "AND attname = 'token'")
              .empty();
}

bool has_call(Transaction& transaction, const ClaimedReplay& replay) {
  return keeps_calls_of_replays(transaction) &&
         transaction.run(sql::kReadCallOfReplay, {replay.id})[0]["has_call"].as<bool>();
}

bool lock_claim(Transaction& transaction, std::int64_t replay, int runs) {
  return !transaction.run(sql::kLockReplayClaim, {replay, runs}).empty();
}

void note_call(Transaction& transaction, std::int64_t replay, const key::Identity& identity,
               std::int64_t token) {
  if (keeps_calls_of_replays(transaction))
    transaction.run(sql::kNoteReplayedCall, {replay, identity.key, identity.tenant, token});
}

std::optional<OtherCall> read_other_call(Transaction& transaction, const ClaimedReplay& replay,
                                         const std::string& scope, const key::Identity& identity) {
  if (!keeps_calls_of_replays(transaction)) return std::nullopt;
  const Rows rows = transaction.run(sql::kReadOtherCallOfLetter,
                                    {replay.dead_letter, scope, identity.key, identity.tenant});
  if (rows.empty()) return std::nullopt;
  return OtherCall{rows[0]["key"].text(), rows[0]["status"].text()};
}

// The letter first: operators lock letters, then look at their replays.
void add_completed(Transaction& transaction, const ClaimedReplay& replay) {
  Session& session = transaction.session();
  transaction.add_own(session.execute(sql::kEndReplayedLetter, {replay.id}));
  transaction.add_own(session.execute(
      sql::kEndReplay, {replay.id, replay.runs, "completed", nullptr, nullptr, nullptr}));
}

void write_note(Session& session, const ClaimedReplay& replay, const ReplayNote& note,
                const std::string& worker, const std::string& group) {
  using What = ReplayNote::What;
  Transaction transaction(session);
  const std::string text = storable(note.text);
  const Parameter sqlstate = null_if_empty(note.sqlstate);
  switch (note.what) {
    case What::put_back:
      transaction.run(sql::kPutReplayBack,
                      {replay.id, replay.runs, worker, seconds_of(note.wait), null_if_empty(text)});
      break;
    case What::tried:
      transaction.run(sql::kFailReplayRun,
                      {replay.id, replay.runs, text, sqlstate, seconds_of(note.wait)});
      break;
    case What::refused:
      transaction.run(sql::kEndReplay, {replay.id, replay.runs, "refused", text, nullptr, nullptr});
      break;
    case What::failed:
      transaction.run(sql::kEndReplay, {replay.id, replay.runs, "failed", text, text, sqlstate});
      break;
  }
  if (note.halt) add_halt(transaction, group, *note.halt);
  transaction.commit();
}

}  // namespace hapax::store
