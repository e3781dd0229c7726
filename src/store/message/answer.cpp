#include "store/message/answer.hpp"

#include "sql_statements.hpp"

namespace hapax::store {

namespace {

std::vector<Parameter> key_of(const ClaimRequest& request) {
  return {request.identity.key, request.scope, request.identity.tenant};
}

std::optional<StoredAnswer> first_of(const Rows& rows) {
  if (rows.empty()) return std::nullopt;
  return answer_of(rows[0]);
}

}  // namespace

std::optional<StoredAnswer> read_answer(Transaction& transaction, const ClaimRequest& request) {
  return first_of(transaction.run(sql::kReadAnswer, key_of(request)));
}

std::optional<StoredAnswer> read_answer(Session& session, const ClaimRequest& request) {
  const std::string read = session.execute(sql::kReadAnswer, key_of(request));
  return first_of(Transaction(session).run_outside(read));
}

std::string begin_read_only(Transaction& transaction) {
  prepare_completion(transaction.session());
  std::string nonce = transaction.session().next_nonce();
  transaction.add("SET TRANSACTION READ ONLY");
  transaction.run(sql::kArm, {nonce});
  return nonce;
}

void commit_synchronously(Transaction& transaction) {
  transaction.add(
      "SELECT pg_catalog.set_config('synchronous_commit', CASE pg_catalog.current_setting("
      "'synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)");
}

void await_durable(Transaction& transaction) {
  commit_synchronously(transaction);
  transaction.run(sql::kTouch, {});
  transaction.commit();
}

}  // namespace hapax::store
