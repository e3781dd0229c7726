#include "store/operator/outside_orders.hpp"

#include "sql_statements.hpp"
#include "store/array.hpp"
#include "store/operator/json_rows.hpp"
#include "store/outside/calls.hpp"

namespace hapax::store {
namespace {

using What = CallDecision::What;

// A worker carries it out with the dead letter, or once the message comes again.
void check_message(const Json& found) {
  if (!found.at("dead_letter").is_null()) return;
  const std::string place =
      found.at("topic").get<std::string>() + "/" + std::to_string(found.at("partition").get<int>());
  const std::string offset = std::to_string(found.at("kafka_offset").get<std::int64_t>());
  const std::string no_worker =
      "so no worker would carry the decision out; decide --give-up, and book it by hand";
  if (found.at("status") == "unknown")
    throw Refused("its message's dead letter was discarded or removed, " + no_worker);
  if (found.at("comes_no_more") == "no checkpoint")
    throw Refused("its group \"" + found.at("group_id").get<std::string>() +
                  "\" has no checkpoint of " + place + " any more, " + no_worker);
  if (found.at("comes_no_more") == "earlier log")
    throw Refused("its message " + place + "/" + offset + " is of an earlier log of the topic, " +
                  no_worker);
  if (found.at("comes_no_more") == "passed over")
    throw Refused(
        "its message " + place + "/" + offset + " was passed over, " + no_worker +
        ". Or let the message come again, and a worker " +
        (found.at("status") == "answered" ? "books the answer" : "goes on with the call") +
        ": hapax offsets rewind " + place + " --to " + offset);
}

void check(const Json& found, const CallDecision& decision) {
  const std::string status = found.at("status");
  if (decision.token && found.at("token") != *decision.token)
    throw Refused("it was called, answered or decided about meanwhile: its token is " +
                  std::to_string(found.at("token").get<std::int64_t>()) + ", not " +
                  std::to_string(*decision.token) + "; look again with `hapax outside list`");
  if (status != "started" && status != "answered" && status != "unknown")
    throw Refused("the key is `" + status + "`; there is no open call to decide about");
  if (!found.at("called_by").is_null())
    throw Refused("worker " + found.at("called_by").get<std::string>() +
                  " calls now, under a lease; wait until it is done, or stop it");
  if (decision.what != What::give_up) check_message(found);
  if (!found.at("answer").is_null() && decision.what == What::did_not_happen)
    throw Refused(
        status == "answered"
            ? "the other side has answered, so it happened; a worker books it, or decide "
              "--happened or --give-up"
            : "the other side has answered, so it happened: decide --happened, which books the "
              "kept answer, or --give-up");
  if (!found.at("dead_letter").is_null() && found.at("group_id") != decision.group)
    throw Refused("its dead letter is of group \"" + found.at("group_id").get<std::string>() +
                  "\", whose workers carry a decision out, and this configuration is of group \"" +
                  decision.group +
                  "\": decide with that group's configuration, and run a worker with it");
  if (decision.what == What::happened && !decision.answer && found.at("answer").is_null())
    throw Refused("no answer is kept; give it, as JSON: --happened '{…}'");
}

const char* action_of(What what) {
  switch (what) {
    case What::happened: return "outside decide --happened";
    case What::did_not_happen: return "outside decide --did-not-happen";
    case What::give_up: break;
  }
  return "outside decide --give-up";
}

const char* status_of(What what) {
  switch (what) {
    case What::happened: return "answered";
    case What::did_not_happen: return "forgotten";
    case What::give_up: break;
  }
  return "completed";
}

Parameter answer_of(const Json& found, const CallDecision& decision) {
  if (decision.what != What::happened) return nullptr;
  if (decision.answer) return *decision.answer;
  return found.at("answer").get<std::string>();
}

// A run of the letter that carries the decision out, with the payload that the call was made for.
// Throws: Refused if that cannot be told.
Rows order_run(Transaction& transaction, const Json& found, const CallDecision& decision,
               bool without_bytes) {
  const auto letter = found.at("dead_letter").get<std::int64_t>();
  const auto token = found.at("token").get<std::int64_t>();
  const std::string key = found.at("key"), tenant = found.at("tenant");
  const Row call = transaction.run(sql::kReadReplayOfCall, {letter, key, tenant, token})[0];
  if (call["is_doubtful"].as<bool>())
    throw Refused(
        "an earlier release ran an edited payload of its dead letter, and noted nowhere which "
        "payload called; decide --give-up, and book it by hand");
  if (without_bytes && !call["edited"].as<bool>())
    throw Refused(
        "its message was more than PostgreSQL takes, or erased, so its dead letter has nothing to "
        "run; decide --give-up, and book it by hand");
  const auto replay = call["id"].as<std::optional<std::int64_t>>();
  return transaction.run(
      sql::kInsertDecidedReplay,
      {letter, decision.who, decision.why, replay ? Parameter(*replay) : Parameter(nullptr), key,
       tenant, token + 1});
}

// The letter carries the decision out, or is closed with it.
void order_letter(Transaction& transaction, const Json& found, const CallDecision& decision) {
  const std::string ids = "{" + std::to_string(found.at("dead_letter").get<std::int64_t>()) + "}";
  const Rows open = transaction.run(sql::kLockOpenDeadLetters, {ids});
  if (open.empty())
    throw Refused("its dead letter was ended meanwhile; look again with `hapax outside list`");
  // A replay that began before the decision may end by what was true then.
  transaction.run(sql::kCancelReplays, {ids, "decided meanwhile by " + decision.who});
  const Rows done =
      decision.what == What::give_up
          ? transaction.run(sql::kDiscardDeadLetters, {ids, decision.who, decision.why})
          : order_run(transaction, found, decision, open[0]["without_bytes"].as<bool>());
  if (done.empty())
    throw Refused("a worker runs a replay of its dead letter now; wait until that has ended");
}

// `steps`: the answers of those that are done, by name; null: none. The client parses them, because
// PostgreSQL's operators refuse JSON with \u0000 in it.
Json with_steps(Json call) {
  Json& steps = call.at("steps");
  if (steps.is_null()) return call;
  steps = Json::parse(steps.get<std::string>());
  steps.erase(kPayloadOfSteps);
  return call;
}

}  // namespace

Json list_calls(Session& session, const std::vector<std::string>& scopes, const CallFilter& filter,
                int limit) {
  Transaction transaction(session);
  Json calls = json_of_rows<Json>(transaction.run(
      sql::kListCalls, {array_of(scopes, [](const std::string& scope) { return scope; }),
                        array_of(filter.statuses, [](const auto& status) { return status; }),
                        filter.abandoned, limit}));
  for (Json& call : calls) call = with_steps(std::move(call));
  return calls;
}

Json decide_call(Session& session, const KeyName& key, const CallDecision& decision) {
  Transaction transaction(session);
  transaction.add("SET LOCAL synchronous_commit = on");
  if (transaction.run(sql::kLockCall, {key.key, key.scope, key.tenant}).empty())
    throw Refused("the key is gone");
  const Json found = with_steps(
      transaction.run(sql::kReadCall, {key.key, key.scope, key.tenant})[0][0].as<Json>());
  check(found, decision);
  const std::string by = decision.who + ": " + decision.why;
  OptionalText error;
  if (decision.what == What::give_up) error = "given up by " + by;
  if (decision.what == What::did_not_happen) error = "did not happen, decided by " + by;
  transaction.run(sql::kDecideCall,
                  {key.key, key.scope, key.tenant, status_of(decision.what),
                   answer_of(found, decision), Parameter(error), decision.retention.count()});
  if (!found.at("dead_letter").is_null()) order_letter(transaction, found, decision);
  log_operation(transaction, {decision.who,
                              action_of(decision.what),
                              key.scope + " " + key.tenant + " " + key.key,
                              decision.why,
                              {{"before", found}}});
  if (!decision.dry_run) transaction.commit();
  return found;
}

}  // namespace hapax::store
