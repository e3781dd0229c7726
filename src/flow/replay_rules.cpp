#include "flow/replay_rules.hpp"

#include "flow/verdicts.hpp"
#include "outside/steps.hpp"

namespace hapax::flow {
namespace {

// Until a worker that calls may be there. Each try is logged.
constexpr std::chrono::seconds kCallerWait{10};

// Why the replay is refused, because its call is not done.
std::optional<std::string> refusal_of_called(const Route& route, const store::KeyHolder& holder) {
  if (holder.status == "unknown")
    return "the outcome is unknown of the call for " + name_of(holder) +
           "; decide that first: hapax outside decide";
  if (route.outside) return std::nullopt;
  return "the key is `" + holder.status + "`: the operation is called for " + name_of(holder) +
         " by a route that calls to the outside";
}

}  // namespace

std::optional<std::string> refusal_of_other_call(
    const store::ClaimedReplay& claimed, const Route& route, const store::ReplayedLetter& letter,
    const store::ClaimRequest& request, const Message& message, store::Transaction& transaction) {
  // Else a decision about its call could not tell which payload it is about.
  if (letter.edited && !store::keeps_calls_of_replays(transaction))
    return "an edited payload may call only on a newer schema: `hapax migrate up`, then replay it";
  if (const auto other =
          store::read_other_call(transaction, claimed, request.scope, request.identity))
    return "an earlier replay has called under the key \"" + other->key +
           "\", and that call is not done: it is `" + other->status +
           "`; decide that first: hapax outside decide";
  if (const auto steps = store::read_steps(transaction, request);
      steps &&
      (letter.edited ? outside::may_be_of_another_payload(*steps, request.identity.fingerprint)
                     : outside::are_of_another_payload(*steps, request.identity.fingerprint)))
    return "steps of its call are done (" + outside::names_of(*steps) +
           "), and they are of another payload: replay it with that payload, or decide: hapax "
           "outside decide";
  if (const auto called = store::payload_called(transaction, request);
      called && !key::same_payload(route.key, message, request.identity.fingerprint, *called))
    return "the call under its key is of another payload, and is not done; replay it with that "
           "payload, or decide: hapax outside decide";
  const key::Identity own{letter.key.value_or(""), letter.tenant.value_or(""), {}};
  if (!letter.key || (own.key == request.identity.key && own.tenant == request.identity.tenant))
    return std::nullopt;
  const auto holder = store::read_holder(transaction, {.identity = own,
                                                       .scope = letter.scope,
                                                       .source = letter.source,
                                                       .retention = route.retention});
  if (!holder || !holder->is(letter.source)) return std::nullopt;
  if (holder->status == "started" || holder->status == "answered")
    return "the edited payload has the key \"" + request.identity.key +
           "\", and the call under the letter's own key \"" + own.key + "\" is not done: it is `" +
           holder->status + "`; replay it without an edited payload first";
  return holder->status == "unknown" ? refusal_of_called(route, *holder) : std::nullopt;
}

std::optional<std::string> refusal(const store::ClaimedReplay& claimed, const Route& route,
                                   const store::ReplayedLetter& letter,
                                   const store::ClaimRequest& request,
                                   const std::optional<store::KeyHolder>& holder,
                                   store::Transaction& transaction) {
  const key::Identity& identity = request.identity;
  const bool same = letter.key == identity.key && letter.tenant == identity.tenant;
  const auto keys_are_kept = [&] {
    return store::keys_are_kept(transaction, claimed, request.scope, route.retention,
                                key::is_by_position(route.key));
  };
  if (letter.scope != request.scope)
    return "it was given up on in scope \"" + letter.scope + "\", and the route's is \"" +
           request.scope + "\" now: what happened to its operation since cannot be told";
  if (key::is_by_position(route.key) && store::may_have_run_since(transaction, claimed))
    return "an operator decided `run` for it after it was given up on, so it may have taken effect "
           "since, and by position nothing tells";
  if (key::is_by_position(route.key) && letter.key && letter.key != identity.key)
    return "it was given up on under the key \"" + *letter.key +
           "\", and the route's key is the position now: whether the operation was completed since "
           "cannot be told";
  if (letter.key && !same && !letter.edited)
    return "the route derives another key from it now (\"" + identity.key + "\", it was \"" +
           *letter.key + "\"): what happened to its operation since cannot be told";
  if (!holder) {
    if (letter.key && same)
      return "its key is not known any more (routes[].retention): whether the operation was "
             "completed meanwhile cannot be told";
    if (keys_are_kept()) return std::nullopt;
    return "hapax cannot tell whether the operation was completed since, and its key forgotten. "
           "The letter is older than routes[].retention or a forgotten key, was skipped as "
           "`unknown_below_highest`, or was given up before its key was known";
  }
  if (holder->status == "completed")
    return "its key was completed meanwhile by " + name_of(*holder) +
           ": the operation took effect, unless `hapax keys show` has an error. Then its call was "
           "refused or given up, and nothing was booked. Only if it shall be called again in that "
           "case: `hapax keys forget`";
  if (holder->status == "started" || holder->status == "answered" || holder->status == "unknown")
    return refusal_of_called(route, *holder);
  if (holder->status == "failed" && !holder->is(request.source) && !keys_are_kept())
    return "its key failed since for " + name_of(*holder) +
           ". hapax cannot tell whether the operation was completed before that: the letter is "
           "older than routes[].retention or a forgotten key, or was skipped as "
           "`unknown_below_highest`";
  return std::nullopt;
}

std::optional<store::ReplayNote> put_back_for_caller(const store::ClaimedReplay& claimed,
                                                     const Route& route,
                                                     const store::ClaimRequest& request,
                                                     store::Transaction& transaction) {
  if (route.outside) return std::nullopt;
  const auto holder = store::read_holder(transaction, request);
  if (!holder || !store::is_begun_call(*holder) || !store::has_call(transaction, claimed))
    return std::nullopt;
  return store::ReplayNote{
      .what = store::ReplayNote::What::put_back,
      .text = "the key is `" + holder->status + "`: the operation is called for " +
              name_of(*holder) +
              ". The replay waits for a worker whose handler calls to the outside, and this one's "
              "does not",
      .wait = kCallerWait};
}

std::string without_bytes(const store::Source& source) {
  return "the message was more than PostgreSQL takes, or erased, so its payload, key and headers "
         "are not kept; read it from Kafka at " +
         source.topic + "/" + std::to_string(source.partition) + "/" +
         std::to_string(source.offset) + ", then `hapax dead replay --payload FILE` or discard it";
}

}  // namespace hapax::flow
