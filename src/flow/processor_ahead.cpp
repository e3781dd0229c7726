// The next message's key, taken in the round trip that commits the message before it.
//
// Both stay transactions of their own: the text has a COMMIT between them, and an error before it
// skips what follows. An error behind it is the next message's, which then takes its key by itself.
#include "flow/processor.hpp"

namespace hapax::flow {

// Completes the message. The claim of the next message goes with it, if that message allows it and
// if the handler has left nothing in the session.
void Processor::complete(std::unique_ptr<store::Transaction> transaction, const Task& task,
                         const store::ClaimRequest& request, const std::string& nonce,
                         const std::optional<std::string>& result, const Next& next) {
  const store::Durability durability = task.route.durability;
  std::optional<Ahead> ahead;
  if (next && session_->is_clean()) ahead = look_ahead(next());
  if (!ahead) return store::complete(*transaction, request, nonce, result, durability);
  const Task& following = *ahead->task;
  const store::Source source = source_of(following);
  try {
    ahead->taken = store::complete_and_take(*transaction, request, nonce, result, durability,
                                            {ahead->identity, following.route.key.scope, source,
                                             following.route.retention, false, following.epoch});
    ahead->transaction = std::move(transaction);
  } catch (const store::DatabaseError& error) {
    const bool its_own = error.fault().kind != store::Fault::Kind::sql ||
                         !store::was_completed(*transaction, request);
    if (its_own) throw;
    return;  // the next message's error: it meets it again when it is processed
  }
  ahead_.emplace(std::move(*ahead));
}

std::optional<Processor::Ahead> Processor::look_ahead(const Task* following) const {
  if (following == nullptr || following->skip != nullptr || following->cautious ||
      following->outages >= kMaxOutages || !session_.is_of(following->incarnation) ||
      following->route.retry.exhausted(following->attempts, following->failing))
    return std::nullopt;
  key::Derived derived =
      key::identify(following->route.key, following->message, following->generation);
  auto* const identity = std::get_if<key::Identity>(&derived);
  if (identity == nullptr) return std::nullopt;
  return Ahead{following, &following->message, std::move(*identity)};
}

}  // namespace hapax::flow
