#include "store/outside/calls.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "sql_statements.hpp"
#include "store/array.hpp"
#include "store/message/replays.hpp"
#include "store/quote.hpp"

namespace hapax::store {
namespace {

// A call depends on it, so a crash of the server must not lose it. `durability` is not asked.
constexpr const char* kSynchronously = "SET LOCAL synchronous_commit = on";

std::string seconds_of(std::chrono::milliseconds duration) {
  return std::to_string(static_cast<double>(duration.count()) / 1000.0);
}

std::vector<Parameter> key_of(const ClaimRequest& request) {
  return {request.identity.key, request.scope, request.identity.tenant};
}

const char* status_after(CallEnd end) {
  switch (end) {
    case CallEnd::refused: return "completed";
    case CallEnd::uncalled: return "failed";
    case CallEnd::resting: return "started";
    case CallEnd::unknown: break;
  }
  return "unknown";
}

}  // namespace

HolderId register_holder(Session& session, const std::string& group, const std::string& worker,
                         std::chrono::milliseconds lease) {
  Transaction transaction(session);
  const Rows rows = transaction.run(sql::kRegisterHolder, {group, worker, seconds_of(lease)});
  transaction.commit();
  return rows[0]["id"].as<HolderId>();
}

bool renew_holder(Session& session, HolderId holder, std::chrono::milliseconds lease) {
  Transaction transaction(session);
  const bool renewed = !transaction.run(sql::kRenewHolder, {holder, seconds_of(lease)}).empty();
  transaction.commit();
  return renewed;
}

void end_holder(Session& session, HolderId holder) {
  Transaction transaction(session);
  transaction.add(session.execute(sql::kEndHolder, {holder}));
  transaction.commit();
}

namespace {

// Enough for a transaction that is about to end; a booking may last.
constexpr const char* kLockWait = "SET LOCAL lock_timeout = '50ms'";
// One of many hardly waits: the thread that asks for all of them renews the holder's lease, too.
constexpr const char* kHardlyWait = "SET LOCAL lock_timeout = '2ms'";
constexpr const char* kLockNotAvailable = "55P03";

// `at_once(some, lock wait)` for all. If another transaction has one of the keys: for each, and
// `locked` stands for those.
template <class Wanted, class Result, class AtOnce>
std::vector<Result> all_or_each(std::span<const Wanted> wanted, const Result& locked,
                                const AtOnce& at_once) {
  const auto unless_locked = [&](auto some, const char* wait) -> std::vector<Result> {
    try {
      return at_once(some, wait);
    } catch (const DatabaseError& error) {
      if (error.sqlstate() != kLockNotAvailable) throw;
      return {};
    }
  };
  std::vector<Result> results = unless_locked(wanted, kLockWait);
  if (!results.empty() || wanted.empty()) return results;
  if (wanted.size() == 1) return {locked};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::vector<Result> one = unless_locked(wanted.subspan(i, 1), kHardlyWait);
    results.push_back(one.empty() ? locked : one.front());
  }
  return results;
}

std::vector<Take> take_at_once(Session& session, HolderId holder,
                               std::span<const CallRequest> requests, bool again,
                               const char* wait) {
  Transaction transaction(session);
  transaction.add(kSynchronously);
  transaction.add(wait);
  std::vector<Take> takes(requests.size());
  for (const CallRequest& request : requests)
    if (request.replay != 0 && !lock_claim(transaction, request.replay, request.runs)) return takes;
  const std::string keys =
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.claim.identity.key); });
  const std::string scopes =
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.claim.scope); });
  const std::string tenants =
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.claim.identity.tenant); });
  const std::string literals[] = {
      keys,
      scopes,
      tenants,
      array_literal(
          requests,
          [](auto& to, const auto& of) { to.add_bytes(of.claim.identity.fingerprint.digest); }),
      array_literal(requests,
                    [](auto& to, const auto& of) { to.add(of.claim.identity.fingerprint.rule); }),
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.claim.source.group); }),
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.claim.source.topic); }),
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.claim.source.generation); }),
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.claim.source.partition); }),
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.claim.source.offset); }),
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.claim.epoch); }),
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.alone ? "t" : "f"); }),
      std::to_string(holder),
      again ? "true" : "false"};
  std::size_t taken = 0;
  for (const Row row : transaction.run(session.execute_literals(sql::kTakeCalls, literals))) {
    takes[row["n"].as<std::size_t>() - 1].taken = TakenCall{
        .token = row["token"].as<std::int64_t>(),
        .calls = row["calls"].as<int>(),
        .crashes = row["crashes"].as<int>(),
        .age = std::chrono::milliseconds(row["age_ms"].as<std::int64_t>()),
        .answer = row["answered"].as<bool>() ? std::optional(row["answer"].text()) : std::nullopt};
    ++taken;
  }
  for (std::size_t i = 0; i < takes.size(); ++i)
    if (takes[i].taken && requests[i].replay != 0)
      note_call(transaction, requests[i].replay, requests[i].claim.identity, takes[i].taken->token);
  if (taken < takes.size())
    for (const Row row : transaction.run(session.execute_literals(
             sql::kReadHeldCalls, std::array{keys, scopes, tenants, literals[12]}))) {
      Take& take = takes[row["n"].as<std::size_t>() - 1];
      take.is_held = !take.taken;
      take.is_own = take.is_held && row["is_own"].as<bool>();
    }
  transaction.commit();
  return takes;
}

}  // namespace

std::vector<Take> take_calls(Session& session, HolderId holder,
                             std::span<const CallRequest> requests, bool again) {
  return all_or_each(requests, Take{.is_held = true}, [&](auto some, const char* wait) {
    return take_at_once(session, holder, some, again, wait);
  });
}

namespace {

std::vector<Kept> keep_at_once(Session& session, const Statement& statement,
                               std::span<const std::string> literals, std::size_t count,
                               const char* wait) {
  Transaction transaction(session);
  transaction.add(wait);
  transaction.add(kSynchronously);
  std::vector<Kept> kept(count, Kept::superseded);
  std::vector<std::int64_t> late;  // kept for an operator
  for (const Row row : transaction.run(session.execute_literals(statement, literals))) {
    if (row["status"].text() == "unknown")
      late.push_back(row["n"].as<std::int64_t>());
    else
      kept[row["n"].as<std::size_t>() - 1] = Kept::yes;
  }
  if (!late.empty() && keeps_calls_of_replays(transaction))
    transaction.run(session.execute_literals(
        sql::kNoteLateAnswers,
        std::array{literals[0], literals[1], literals[2],
                   array_literal(late, [](auto& to, std::int64_t n) { to.add(n); })}));
  transaction.commit();
  return kept;
}

// The first four parameters of both statements.
template <class Items>
std::vector<std::string> keys_and_tokens(const Items& items) {
  return {array_literal(items, [](auto& to, const auto& of) { to.add(of.identity.key); }),
          array_literal(items, [](auto& to, const auto& of) { to.add(of.scope); }),
          array_literal(items, [](auto& to, const auto& of) { to.add(of.identity.tenant); }),
          array_literal(items, [](auto& to, const auto& of) { to.add(of.token); })};
}

std::string text_of(const KeptSteps& steps) {
  if (steps.answers.empty()) return "";
  std::string text =
      "{" + nlohmann::json(kPayloadOfSteps).dump() + ':' + nlohmann::json(steps.payload).dump();
  for (const auto& [name, answer] : steps.answers)
    text += ',' + nlohmann::json(name).dump() + ':' + answer;
  return text + '}';
}

}  // namespace

std::vector<Kept> keep_answers(Session& session, std::span<const KeptAnswer> answers) {
  return all_or_each(answers, Kept::locked, [&](auto some, const char* wait) {
    std::vector<std::string> literals = keys_and_tokens(some);
    literals.push_back(array_literal(some, [](auto& to, const auto& of) { to.add(of.answer); }));
    return keep_at_once(session, sql::kKeepAnswers, literals, some.size(), wait);
  });
}

std::vector<Kept> keep_steps(Session& session, std::span<const StepsToKeep> steps) {
  return all_or_each(steps, Kept::locked, [&](auto some, const char* wait) {
    std::vector<std::string> literals = keys_and_tokens(some);
    literals.push_back(
        array_literal(some, [](auto& to, const auto& of) { to.add(text_of(of.steps)); }));
    literals.push_back(
        array_literal(some, [](auto& to, const auto& of) { to.add(text_of(of.before)); }));
    return keep_at_once(session, sql::kKeepSteps, literals, some.size(), wait);
  });
}

namespace {

std::optional<KeptSteps> steps_of(const Rows& rows) {
  if (rows.empty()) return std::nullopt;
  KeptSteps steps;
  const auto row = nlohmann::json::parse(rows[0][0].text());
  steps.can_be_kept = row.contains("steps");
  const auto kept = row.value("steps", nlohmann::json());
  for (const auto& [name, answer] : kept.items())
    if (name == kPayloadOfSteps)
      steps.payload = answer.get<std::string>();
    else
      steps.answers.emplace(name, answer.dump());
  return steps;
}

}  // namespace

std::optional<KeptSteps> read_steps(Session& session, const key::Identity& identity,
                                    const std::string& scope, std::int64_t token) {
  Transaction transaction(session);
  auto steps =
      steps_of(transaction.run(sql::kReadSteps, {identity.key, scope, identity.tenant, token}));
  transaction.commit();
  return steps;
}

std::optional<KeptSteps> read_steps(Transaction& transaction, const ClaimRequest& request) {
  std::vector<Parameter> parameters = key_of(request);
  parameters.emplace_back(nullptr);
  return steps_of(transaction.run(sql::kReadSteps, parameters));
}

std::optional<key::Fingerprint> payload_called(Transaction& transaction,
                                               const ClaimRequest& request) {
  std::vector<Parameter> parameters = key_of(request);
  parameters.emplace_back(nullptr);
  const Rows rows = transaction.run(sql::kReadSteps, parameters);
  if (rows.empty()) return std::nullopt;
  const auto row = nlohmann::json::parse(rows[0][0].text());
  if (row.at("status") == "started" && row.at("calls") == 0) return std::nullopt;
  const std::string digest = row.at("fingerprint");  // "\\x…"
  return key::Fingerprint{bytes_of_hex(std::string_view(digest).substr(2)),
                          row.at("fingerprint_rule")};
}

void give_call_back(Session& session, const ClaimRequest& request, std::int64_t token,
                    bool uncalled) {
  std::vector<Parameter> parameters = key_of(request);
  parameters.emplace_back(token);
  parameters.emplace_back(uncalled);
  Transaction transaction(session);
  transaction.add(session.execute(sql::kGiveCallBack, parameters));
  transaction.commit();
}

std::vector<HeldKey> read_keys_of_holder(Session& session, HolderId holder) {
  Transaction transaction(session);
  std::vector<HeldKey> held;
  for (const Row row : transaction.run(sql::kReadKeysOfHolder, {holder}))
    held.push_back({.identity = {row["key"].text(), row["tenant"].text(), {}},
                    .scope = row["scope"].text(),
                    .holder = holder});
  transaction.commit();
  return held;
}

// The token of a take in doubt is not known. If only the holder were compared, a text that reaches
// PostgreSQL late could give back a later take of the same holder.
void release_calls(Session& session, std::span<const HeldKey> keys) {
  std::string literals[] = {
      array_literal(keys, [](auto& to, const auto& of) { to.add(of.identity.key); }),
      array_literal(keys, [](auto& to, const auto& of) { to.add(of.scope); }),
      array_literal(keys, [](auto& to, const auto& of) { to.add(of.identity.tenant); }),
      array_literal(keys, [](auto& to, const auto& of) { to.add(of.holder); }),
      array_literal(keys, [](auto& to, const auto& of) { to.add(of.uncalled ? "t" : "f"); })};
  Transaction transaction(session);
  std::vector<std::int64_t> tokens(keys.size());  // 0: it is not held
  for (const Row row :
       transaction.run(session.execute_literals(sql::kReadLeftCalls, std::span(literals).first(4))))
    tokens[row["n"].as<std::size_t>() - 1] = row["token"].as<std::int64_t>();
  literals[3] = array_literal(tokens, [](auto& to, std::int64_t token) { to.add(token); });
  transaction.add(session.execute_literals(sql::kReleaseCalls, literals));
  transaction.commit();
}

namespace {

bool end_key(Transaction& transaction, const ClaimRequest& request, std::int64_t token, CallEnd end,
             const std::string& why) {
  std::vector<Parameter> parameters = key_of(request);
  parameters.emplace_back(token);
  parameters.emplace_back(status_after(end));
  parameters.emplace_back(storable(why));
  parameters.emplace_back(request.retention.count());
  transaction.add(kSynchronously);
  return !transaction.run(sql::kEndCall, parameters).empty();
}

}  // namespace

bool end_replayed_call(Session& session, const ClaimRequest& request, std::int64_t token,
                       CallEnd end, const std::string& why) {
  Transaction transaction(session);
  if (!end_key(transaction, request, token, end, why)) return false;
  transaction.commit();
  return true;
}

std::optional<std::int64_t> end_call(Session& session, const ClaimRequest& request,
                                     std::int64_t token, CallEnd end, const DeadLetter& letter) {
  Transaction transaction(session);
  if (!end_key(transaction, request, token, end, letter.error)) return std::nullopt;
  add_forget_attempts(transaction, request.source);
  const auto id = insert_dead_letter(transaction, letter);
  if (!id) add_failed_again(transaction, letter);
  transaction.commit();
  return id.value_or(0);
}

Rest rest_of(Transaction& transaction, const ClaimRequest& request) {
  std::vector<Parameter> parameters = key_of(request);
  const Source& source = request.source;
  for (Parameter parameter : std::initializer_list<Parameter>{
           source.group, source.topic, source.generation, source.partition, source.offset})
    parameters.push_back(std::move(parameter));
  const Rows rows = transaction.run(sql::kReadRest, parameters);
  if (rows.empty()) return Rest::none;
  return rows[0]["is_letter"].as<bool>() ? Rest::of_letter : Rest::of_another;
}

bool is_called(Transaction& transaction, const ClaimRequest& request) {
  const std::array<const ClaimRequest*, 1> one = {&request};
  const std::string literals[] = {
      array_literal(one, [](auto& to, const auto* of) { to.add(of->identity.key); }),
      array_literal(one, [](auto& to, const auto* of) { to.add(of->scope); }),
      array_literal(one, [](auto& to, const auto* of) { to.add(of->identity.tenant); }), "0"};
  return !transaction.run(transaction.session().execute_literals(sql::kReadHeldCalls, literals))
              .empty();
}

void renew_fingerprint(Session& session, const ClaimRequest& request,
                       const key::Fingerprint& kept) {
  std::vector<Parameter> parameters = key_of(request);
  const key::Fingerprint& own = request.identity.fingerprint;
  parameters.push_back(Parameter::bytes(own.digest));
  parameters.emplace_back(own.rule);
  parameters.push_back(Parameter::bytes(kept.digest));
  parameters.emplace_back(kept.rule);
  Transaction transaction(session);
  transaction.add(session.execute(sql::kRenewFingerprint, parameters));
  transaction.commit();
}

std::size_t count_unknown(Session& session, const std::vector<std::string>& scopes) {
  Transaction transaction(session);
  const Rows rows = transaction.run(
      sql::kCountUnknown, {array_of(scopes, [](const std::string& scope) { return scope; })});
  transaction.commit();
  return rows[0][0].as<std::size_t>();
}

}  // namespace hapax::store
