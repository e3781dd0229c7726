// The batches that publish.transactions sends: of each topic the one that is on its way.
//
// Thread safety: none; each call uses the caller's session or transaction.
// Throws: DatabaseError (Phase::account), from all of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "store/session.hpp"
#include "store/transaction.hpp"

namespace hapax::store {

// As its row has it. Kafka has the batch if, and only if, it holds the batch's token.
struct OpenBatch {
  std::int64_t number = 0;
  std::string token;
  std::string follows;  // the token that Kafka held before
  std::size_t records = 0;

  // It has halted its topic: operators decide about its records. Kafka may still make some visible.
  bool is_halted() const { return follows == token; }
};

// False: another role of the group may have opened some, and this one cannot tell.
bool may_read_batches(Session& session);

// By topic. None if the schema is older than kTransactionsSchema.
std::map<std::string, OpenBatch> read_open_batches(Session& session, const std::string& group);

// To be opened in the place of the topic's last batch, which is settled or was never sent.
struct NextBatch {
  std::string topic, token, follows;
  std::int64_t above = 0;  // its number is higher than that
  std::vector<std::int64_t> ids;
};

// Returns its number.
std::int64_t open_batch(Transaction& transaction, const std::string& group, const NextBatch& batch);

// What Kafka told of a batch. If another one was opened since, the token names nothing, and nothing
// changes.
struct SettledBatch {
  std::string topic, token;
  bool sent = false;    // then its records are removed
  bool halted = false;  // see OpenBatch::is_halted(); false ends that
};
void settle_batch(Transaction& transaction, const std::string& group, const SettledBatch& batch);

}  // namespace hapax::store
