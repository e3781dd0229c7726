// Published records on their way into hapax.outbox, in the transaction that publishes them.
//
// Thread safety: none; it belongs to the session's thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "store/message/source.hpp"
#include "store/transaction.hpp"

namespace hapax::store {

struct Published {
  std::string topic;
  std::optional<std::string> key, payload;
  std::string headers;          // outbox_headers_text()
  std::string idempotency_key;  // of this record
  Source source;                // the message whose handler publishes it
};

// Before a handler runs, because a role that it takes may not prepare the statement.
void prepare_published(Session& session);

// Adds the rows to the transaction, so that they go out with its completion. Their ids are drawn in
// this order. Precondition: all of one group and source topic; nothing but the seal is added after.
void add_published(Transaction& transaction, const std::vector<Published>& records);

}  // namespace hapax::store
