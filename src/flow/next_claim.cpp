#include "flow/next_claim.hpp"

#include "flow/verdicts.hpp"

#include <utility>
#include <variant>

namespace hapax::flow {
namespace {

// The key of the next message, if it can run without a decision before. Otherwise nothing.
std::optional<key::Identity> key_to_claim(const Task* following, const LaneSession& session) {
  if (following == nullptr || following->route.outside || following->skip != nullptr ||
      following->cautious || following->settled || following->in_doubt || unread(*following) ||
      following->outages >= kMaxOutages || !session.is_of(following->incarnation) ||
      following->route.retry.exhausted(following->attempts, following->failing))
    return std::nullopt;
  key::Derived derived =
      key::identify(following->route.key, following->message, following->generation);
  auto* const identity = std::get_if<key::Identity>(&derived);
  if (identity != nullptr && violation(*following)) return std::nullopt;
  return identity == nullptr ? std::nullopt : std::optional(std::move(*identity));
}

}  // namespace

std::optional<NextClaim> complete(Attempt& attempt, std::unique_ptr<store::Transaction> transaction,
                                  const store::ClaimRequest& request, const std::string& nonce,
                                  const std::optional<std::string>& result, const Next& next) {
  const store::Durability durability = attempt.task.route.durability;
  const Task* const following = next && attempt.session->is_clean() ? next() : nullptr;
  std::optional<key::Identity> identity = key_to_claim(following, attempt.session);
  if (!identity) {
    store::complete(*transaction, request, nonce, result, durability);
    return std::nullopt;
  }
  const store::Source source = following->source();
  std::optional<store::TakenKey> taken =
      store::complete_and_take(*transaction, request, nonce, result, durability,
                               {.identity = *identity,
                                .scope = following->route.key.scope,
                                .source = source,
                                .retention = following->route.retention,
                                .epoch = following->epoch,
                                .by_position = key::is_by_position(following->route.key)});
  if (!taken) return std::nullopt;
  return NextClaim{.message = &following->message,
                   .identity = std::move(*identity),
                   .taken = std::move(*taken),
                   .transaction = std::move(transaction)};
}

}  // namespace hapax::flow
