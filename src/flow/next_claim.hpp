// The next message's key, claimed in the round trip that commits the message before it.
//
// Both messages keep transactions of their own, because the text has a COMMIT between them. An
// error before the COMMIT skips the rest. An error after it belongs to the next message, which then
// claims its key by itself.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "flow/attempt.hpp"
#include "store/message/claim.hpp"
#include "store/transaction.hpp"

namespace hapax::flow {

// Returns the message that the lane processes next; null: none.
using Next = std::function<const Task*()>;

struct NextClaim {
  const Message* message;
  key::Identity identity;
  store::TakenKey taken;
  std::unique_ptr<store::Transaction> transaction;
};

// Completes the message. The claim of the next message goes with it, if that message allows it and
// if the handler has left nothing in the session.
// Throws: DatabaseError (Phase::complete), of this message.
std::optional<NextClaim> complete(Attempt& attempt, std::unique_ptr<store::Transaction> transaction,
                                  const store::ClaimRequest& request, const std::string& nonce,
                                  const std::optional<std::string>& result, const Next& next);

}  // namespace hapax::flow
