// The next message's key, claimed in the round trip that commits the message before it.
//
// Both stay transactions of their own: the text has a COMMIT between them, and an error before it
// skips what follows. An error behind it is the next message's, which then claims its key by
// itself.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "flow/attempt.hpp"
#include "store/message/claim.hpp"
#include "store/transaction.hpp"

namespace hapax::flow {

// Asked for the message that its lane processes next; null: none.
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
