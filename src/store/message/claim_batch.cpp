#include "store/message/claim_batch.hpp"

#include <array>
#include <map>

#include "sql_statements.hpp"
#include "store/quote.hpp"

namespace hapax::store {

BatchClaim claim_batch(Transaction& transaction, std::span<const ClaimRequest> requests,
                       bool one_at_a_time) {
  Session& session = transaction.session();
  prepare_completion(session);
  BatchClaim claim;
  claim.nonce = session.next_nonce();
  claim.keys.resize(requests.size());
  const ClaimRequest& first = requests.front();
  const std::string keys =
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.identity.key); });
  const std::string scope = text_literal(first.scope);
  const std::string tenants =
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.identity.tenant); });

  if (one_at_a_time)
    transaction.add(session.execute(sql::kLockBatches, {first.source.group, first.source.topic}));
  const std::string arm = session.execute(sql::kArm, {claim.nonce});
  transaction.add(arm);
  const std::string literals[] = {
      keys,
      scope,
      tenants,
      array_literal(requests,
                    [](auto& to, const auto& of) { to.add_bytes(of.identity.fingerprint.digest); }),
      text_literal(first.identity.fingerprint.rule),
      text_literal(first.source.group),
      text_literal(first.source.topic),
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.source.generation); }),
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.source.partition); }),
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.source.offset); }),
      std::to_string(first.retention.count()),
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.epoch); })};
  const std::optional<Rows> won =
      transaction.run_unless(requests.size(), session.execute_literals(sql::kClaimBatch, literals));
  if (!won) {
    for (BatchClaim::Key& key : claim.keys) key.ours = true;
    return claim;
  }
  std::map<std::pair<std::int32_t, std::int64_t>, std::size_t> by_coordinates;
  for (std::size_t i = 0; i < requests.size(); ++i)
    by_coordinates[{requests[i].source.partition, requests[i].source.offset}] = i;
  for (const Row row : *won)
    claim
        .keys[by_coordinates.at(
            {row["partition"].as<std::int32_t>(), row["kafka_offset"].as<std::int64_t>()})]
        .ours = true;
  // The statement that lost cannot see the winners' rows; the next one can.
  const std::string read =
      session.execute_literals(first.reads_answer ? sql::kReadBatchAnswers : sql::kReadBatchKeys,
                               std::array{keys, scope, tenants});
  for (const Row row : won->empty() ? transaction.roll_back_and_run(read) : transaction.run(read)) {
    BatchClaim::Key& key = claim.keys[row["n"].as<std::size_t>() - 1];
    if (key.ours) continue;
    key.holder = holder_of(row);
    if (first.reads_answer) key.answer = answer_of(row);
  }
  if (won->empty()) transaction.add(arm);
  return claim;
}

void add_results(Transaction& transaction, std::span<const ClaimRequest> requests,
                 std::span<const std::pair<std::size_t, std::string>> results) {
  if (results.empty()) return;
  ArrayLiteral keys, tenants, texts;
  for (const auto& [n, result] : results) {
    keys.add(requests[n].identity.key);
    tenants.add(requests[n].identity.tenant);
    texts.add(result);
  }
  const std::string literals[] = {std::move(keys).text(), text_literal(requests.front().scope),
                                  std::move(tenants).text(), std::move(texts).text()};
  transaction.add("SET LOCAL enable_seqscan = off");
  transaction.add_own(transaction.session().execute_literals(sql::kStoreResults, literals));
  transaction.add("SET LOCAL enable_seqscan TO DEFAULT");
}

bool has_deferred(Session& session) {
  Transaction transaction(session);
  return transaction.run(sql::kHasDeferred, {})[0][0].as<bool>();
}

}  // namespace hapax::store
