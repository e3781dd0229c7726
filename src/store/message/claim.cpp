#include "store/message/claim.hpp"

#include "sql_statements.hpp"
#include "store/message/position_claim.hpp"
#include "store/quote.hpp"
#include "store/worker/retention.hpp"

namespace hapax::store {
namespace {

// If a claim loses to a row that retention deletes at that moment, there is nothing to read, and
// the claim begins again. So often in a row is no chance.
constexpr int kMaxClaimRounds = 5;

// In milliseconds. The message before is committed already, and waits so long for the next one's
// key.
constexpr const char* kAheadLockTimeout = "50";

std::vector<Parameter> claim_parameters(const ClaimRequest& request) {
  const key::Identity& identity = request.identity;
  std::vector<Parameter> parameters = {identity.key, request.scope, identity.tenant,
                                       Parameter::bytes(identity.fingerprint.digest),
                                       identity.fingerprint.rule};
  for (Parameter& parameter : request.source.parameters())
    parameters.push_back(std::move(parameter));
  parameters.emplace_back(request.retention.count());
  return parameters;
}

std::vector<Parameter> key_parameters(const ClaimRequest& request) {
  return {request.identity.key, request.scope, request.identity.tenant};
}

}  // namespace

KeyHolder holder_of(const Row& row) {
  KeyHolder holder;
  holder.status = row["status"].text();
  holder.fingerprint.digest = bytes_of_hex(row["fingerprint"]).value_or("");
  holder.fingerprint.rule = row["fingerprint_rule"].as<std::optional<std::string>>().value_or("");
  holder.group = row["group_id"].text();
  holder.topic = row["topic"].text();
  holder.generation = row["generation"].as<std::int32_t>();
  holder.partition = row["partition"].as<std::int32_t>();
  holder.offset = row["kafka_offset"].as<std::int64_t>();
  return holder;
}

StoredAnswer answer_of(const Row& row) {
  return {holder_of(row), row["result"].as<std::optional<std::string>>(),
          std::chrono::sys_seconds(std::chrono::seconds(row["expires_at"].as<std::int64_t>()))};
}

bool KeyHolder::is(const Source& source) const {
  return group == source.group && topic == source.topic && generation == source.generation &&
         partition == source.partition && offset == source.offset;
}

namespace {

std::string take_position_text(Session& session, const ClaimRequest& request,
                               const std::string& nonce, const std::string& lock_timeout) {
  const Source& source = request.source;
  return session.execute(
      sql::kClaimPosition,
      {nonce, source.group, source.topic, source.partition, source.generation, request.epoch,
       source.offset, request.in_doubt ? "true" : "false", lock_timeout, session.lock_timeout()});
}

std::string take_text(Session& session, const ClaimRequest& request, const std::string& nonce,
                      const std::string& lock_timeout) {
  if (request.by_position) return take_position_text(session, request, nonce, lock_timeout);
  std::vector<Parameter> parameters = claim_parameters(request);
  parameters.emplace_back(nonce);
  parameters.emplace_back(lock_timeout);
  parameters.emplace_back(session.lock_timeout());
  return session.execute(sql::kClaim, parameters);
}

std::string wait_of(const Session& session, const ClaimRequest& request) {
  return request.wait ? std::to_string(request.wait->count()) : session.lock_timeout();
}

std::string read_text(Session& session, const ClaimRequest& request) {
  return session.execute(request.reads_answer ? sql::kReadAnswer : sql::kReadKey,
                         key_parameters(request));
}

std::optional<std::int64_t> epoch_of(const Rows& rows) {
  return rows[0]["epoch"].as<std::optional<std::int64_t>>();
}

// No other message can have this offset. So it is ours, or the partition is another worker's, or an
// earlier transaction settled it.
void note_position(TakenKey& taken, const ClaimRequest& request, const std::string& claimed) {
  taken.ours = true;
  taken.settled = claimed == "settled";
  if (claimed != "fenced") taken.epoch = request.epoch;
}

void note(TakenKey& taken, const ClaimRequest& request, const Rows& rows) {
  if (request.by_position) return note_position(taken, request, rows[0]["claimed"].text());
  taken.ours = !rows.empty();
  if (taken.ours) taken.epoch = epoch_of(rows);
}

// What the row of its key would hold, if it had one.
KeyHolder itself(const ClaimRequest& request) {
  const Source& source = request.source;
  return {.status = "completed",
          .fingerprint = request.identity.fingerprint,
          .group = source.group,
          .topic = source.topic,
          .generation = source.generation,
          .partition = source.partition,
          .offset = source.offset};
}

// `now`: the partition's epoch.
bool is_fenced(const ClaimRequest& request, const std::optional<std::int64_t>& now) {
  return request.epoch != 0 && now != request.epoch;
}

// `alone`: the transaction began by taking the key. If the claim is lost, the next text also ends
// the transaction, so a duplicate takes two round trips.
Claim claim_taken(Transaction& transaction, const ClaimRequest& request, TakenKey taken,
                  bool alone) {
  Session& session = transaction.session();
  for (int round = 1; !taken.ours; ++round) {
    // The statement that lost cannot see the winner's row. The next statement can.
    const std::string read = read_text(session, request);
    const Rows rows = alone ? transaction.roll_back_and_run(read) : transaction.run(read);
    if (!rows.empty()) {
      // The message may take the key over, and the seal then needs the nonce.
      if (alone) transaction.add(session.execute(sql::kArm, {taken.nonce}));
      Claim lost{std::move(taken.nonce), holder_of(rows[0])};
      if (request.reads_answer) lost.answer = answer_of(rows[0]);
      return lost;
    }
    if (round == kMaxClaimRounds)
      throw DatabaseError(
          {Fault::Kind::sql, "55P03", "the key vanished again and again while claimed"});
    note(taken, request,
         transaction.run(take_text(session, request, taken.nonce, wait_of(session, request))));
  }
  if (taken.settled) return {std::move(taken.nonce), itself(request)};
  return {std::move(taken.nonce), {}, is_fenced(request, taken.epoch)};
}

}  // namespace

void prepare_completion(Session& session) {
  if (!session.prepare(sql::kSeal)) return;
  for (const Statement* statement :
       {&sql::kSealUnflushed, &sql::kStoreResult, &sql::kStoreResults, &sql::kForgetAttempts,
        &sql::kEndReplayedLetter, &sql::kEndReplay, &sql::kEndBookedLetter})
    session.prepare(*statement);
}

Claim claim(Transaction& transaction, const ClaimRequest& request) {
  if (!request.prepares_late) prepare_completion(transaction.session());
  const bool alone = !transaction.has_begun();
  TakenKey taken{transaction.session().next_nonce()};
  const std::string take = take_text(transaction.session(), request, taken.nonce,
                                     wait_of(transaction.session(), request));
  note(taken, request, transaction.run(take));
  return claim_taken(transaction, request, std::move(taken), alone);
}

Claim claim(Transaction& transaction, const ClaimRequest& request, TakenKey taken) {
  return claim_taken(transaction, request, std::move(taken), true);
}

TakeOver take_over(Transaction& transaction, const ClaimRequest& request, const KeyHolder& holder) {
  std::vector<Parameter> parameters = claim_parameters(request);
  for (Parameter parameter :
       std::initializer_list<Parameter>{holder.status, holder.group, holder.topic,
                                        holder.generation, holder.partition, holder.offset})
    parameters.push_back(std::move(parameter));
  const Rows rows = transaction.run(sql::kTakeOver, parameters);
  if (rows.empty()) return TakeOver::lost;
  return is_fenced(request, epoch_of(rows)) ? TakeOver::fenced : TakeOver::ours;
}

bool count_duplicate(Transaction& transaction, const ClaimRequest& request,
                     std::optional<std::string>& stored_result) {
  const Rows rows = transaction.run(sql::kCountDuplicate, key_parameters(request));
  if (rows.empty()) return false;
  stored_result = rows[0]["result"].as<std::optional<std::string>>();
  return true;
}

Known known_coordinates(Transaction& transaction, const Source& source, const std::string& scope,
                        std::chrono::seconds retention) {
  std::vector<Parameter> parameters = source.parameters();
  parameters.emplace_back(retention.count());
  parameters.emplace_back(forgotten_until(transaction, scope));
  const Rows rows = transaction.run(sql::kKnownCoordinates, parameters);
  return {rows[0]["dead"].as<bool>(), rows[0]["attempted"].as<bool>()};
}

bool gave_up_on_record(Transaction& transaction, const KeyHolder& holder, std::string_view origin) {
  return transaction
      .run(sql::kGaveUpOnRecord, {holder.group, holder.topic, holder.generation, holder.partition,
                                  holder.offset, Parameter::bytes(origin)})[0]["copy"]
      .as<bool>();
}

void add_look(Transaction& transaction, const std::string& nonce) {
  if (transaction.is_watched())
    transaction.add(transaction.session().execute(sql::kLookAtClaim, {nonce}));
}

void refuse_ended(Transaction& transaction, const std::string& nonce) {
  transaction.drop_pending();
  try {
    transaction.run(sql::kSeal, {nonce});
    return;
  } catch (const DatabaseError& error) {
    if (error.sqlstate() == "HX002" ||
        classify(Phase::handler, error.fault()) == FailureClass::outage)
      throw;
  }
  transaction.refuse_ended();
}

namespace {

void add_seal(Transaction& transaction, const std::string& nonce, Durability durability) {
  const Statement& text = durability == Durability::checkpoint ? sql::kSealUnflushed : sql::kSeal;
  transaction.add(transaction.session().execute(text, {nonce}));
}

void add_result(Transaction& transaction, const ClaimRequest& request,
                const std::optional<std::string>& result) {
  if (!result) return;
  std::vector<Parameter> parameters = key_parameters(request);
  parameters.emplace_back(*result);
  transaction.add_own(transaction.session().execute(sql::kStoreResult, parameters));
}

}  // namespace

void seal(Transaction& transaction, const std::string& nonce, Durability durability) {
  if (transaction.is_watched() && transaction.has_pending()) {
    try {
      transaction.flush();
    } catch (const DatabaseError&) {
      transaction.refuse_ended();
      throw;
    }
  }
  add_seal(transaction, nonce, durability);
  try {
    transaction.commit();
  } catch (const DatabaseError& error) {
    // A session that has lost our statements has not run the seal.
    if (is_aborted(error.fault()) || is_of_a_shared_session(error.sqlstate()))
      transaction.refuse_ended();
    throw;
  }
}

void complete(Transaction& transaction, const ClaimRequest& request, const std::string& nonce,
              const std::optional<std::string>& result, Durability durability) {
  add_result(transaction, request, result);
  seal(transaction, nonce, durability);
}

std::optional<KeyHolder> read_holder(Session& session, const ClaimRequest& request) {
  const std::string read = read_text(session, request);
  Transaction none(session);
  const Rows rows = none.run_outside(read);
  if (rows.empty()) return std::nullopt;
  return holder_of(rows[0]);
}

std::optional<KeyHolder> read_holder(Transaction& transaction, const ClaimRequest& request) {
  const Rows rows = transaction.run(read_text(transaction.session(), request));
  if (rows.empty()) return std::nullopt;
  return holder_of(rows[0]);
}

namespace {

// Whether the message was completed although its text failed. Then the error is of a statement
// after its COMMIT.
bool was_completed(Transaction& transaction, const ClaimRequest& request) {
  transaction.rollback();
  try {
    if (request.by_position) return is_settled(transaction.session(), request.source);
    const auto holder = read_holder(transaction.session(), request);
    return holder && holder->status == "completed" && holder->is(request.source);
  } catch (const DatabaseError& error) {
    Fault fault = error.fault();
    fault.kind = Fault::Kind::in_doubt;
    fault.sqlstate.clear();  // or classify() would go by it
    throw DatabaseError(fault, error.statement());
  }
}

}  // namespace

std::optional<TakenKey> complete_and_take(Transaction& transaction, const ClaimRequest& request,
                                          const std::string& nonce,
                                          const std::optional<std::string>& result,
                                          Durability durability, const ClaimRequest& next) {
  Session& session = transaction.session();
  TakenKey taken{session.next_nonce()};
  const std::string take = take_text(session, next, taken.nonce, kAheadLockTimeout);
  add_result(transaction, request, result);
  add_seal(transaction, nonce, durability);
  try {
    note(taken, next, transaction.commit_and_run(take));
  } catch (const DatabaseError& error) {
    if (error.fault().kind != Fault::Kind::sql || !was_completed(transaction, request)) throw;
    return std::nullopt;
  }
  return taken;
}

std::optional<std::int64_t> fail(Transaction& transaction, const ClaimRequest& request,
                                 const std::string& nonce, const DeadLetter& letter) {
  std::vector<Parameter> parameters =
      request.by_position ? claim_parameters(request) : key_parameters(request);
  parameters.emplace_back(storable(letter.error));
  transaction.add(transaction.session().execute(
      request.by_position ? sql::kInsertFailedKey : sql::kFailKey, parameters));
  const auto id = insert_dead_letter(transaction, letter);
  if (!id) add_failed_again(transaction, letter);
  complete(transaction, request, nonce, std::nullopt);
  return id;
}

}  // namespace hapax::store
