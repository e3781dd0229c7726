#include "store/outside/answer_claims.hpp"

#include "sql_statements.hpp"
#include "store/quote.hpp"

namespace hapax::store {

AnswerClaim claim_answered(Transaction& transaction, const ClaimRequest& request,
                           std::int64_t token) {
  Session& session = transaction.session();
  if (!request.prepares_late) prepare_completion(session);
  AnswerClaim claim{session.next_nonce()};
  transaction.add(session.execute(sql::kArm, {claim.nonce}));
  const Source& source = request.source;
  const Rows rows =
      transaction.run(sql::kClaimAnswered,
                      {request.identity.key, request.scope, request.identity.tenant, token,
                       request.retention.count(), source.group, source.topic, source.partition});
  claim.lost = rows.empty();
  if (!claim.lost && request.epoch != 0)
    claim.fenced = rows[0]["epoch"].as<std::optional<std::int64_t>>() != request.epoch;
  return claim;
}

BatchClaim claim_answers(Transaction& transaction, std::span<const ClaimRequest> requests,
                         std::span<const std::int64_t> tokens) {
  Session& session = transaction.session();
  prepare_completion(session);
  BatchClaim claim{session.next_nonce(), std::vector<BatchClaim::Key>(requests.size())};
  transaction.add(session.execute(sql::kArm, {claim.nonce}));
  const ClaimRequest& first = requests.front();
  const std::string literals[] = {
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.identity.key); }),
      text_literal(first.scope),
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.identity.tenant); }),
      array_literal(tokens, [](auto& to, std::int64_t token) { to.add(token); }),
      std::to_string(first.retention.count()),
      text_literal(first.source.group),
      text_literal(first.source.topic),
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.source.partition); }),
      array_literal(requests, [](auto& to, const auto& of) { to.add(of.epoch); })};
  for (const Row row : transaction.run(session.execute_literals(sql::kClaimAnswers, literals)))
    claim.keys[row["n"].as<std::size_t>() - 1].ours = true;
  return claim;
}

void add_end_of_letter(Transaction& transaction, const Source& source) {
  transaction.add_own(transaction.session().execute(sql::kEndBookedLetter, source.parameters()));
}

}  // namespace hapax::store
