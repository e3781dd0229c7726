#include "store/claim_batch.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "sql_statements.hpp"
#include "store/quote.hpp"

namespace hapax::store {
namespace {

// The array parameters, in the order in which every process takes locks.
class Arrays {
 public:
  Arrays(std::span<const ClaimRequest> requests, const std::vector<std::size_t>& order)
      : requests_(requests), order_(order) {}

  template <class Value>
  Parameter operator()(Value value) const {
    std::string text = "{";
    for (const std::size_t i : order_) append_array_element(text, value(requests_[i]));
    return text + "}";
  }

 private:
  std::span<const ClaimRequest> requests_;
  const std::vector<std::size_t>& order_;
};

std::vector<std::size_t> bytewise(std::span<const ClaimRequest> requests) {
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t left, std::size_t right) {
    const key::Identity& a = requests[left].identity;
    const key::Identity& b = requests[right].identity;
    const int keys = a.key.compare(b.key);
    return keys != 0 ? keys < 0 : a.tenant < b.tenant;
  });
  return order;
}

}  // namespace

BatchClaim claim_batch(Transaction& transaction, std::span<const ClaimRequest> requests) {
  Session& session = transaction.session();
  BatchClaim claim;
  claim.nonce = session.next_nonce();
  claim.keys.resize(requests.size());
  const std::vector<std::size_t> order = bytewise(requests);
  const Arrays array(requests, order);
  const ClaimRequest& first = requests.front();
  const Parameter keys = array([](const auto& r) { return Parameter(r.identity.key); });
  const Parameter tenants = array([](const auto& r) { return Parameter(r.identity.tenant); });

  const std::string arm = session.execute(sql::kArm, {claim.nonce});
  transaction.add(arm);
  const Rows won = transaction.run(
      sql::kClaimBatch,
      {keys, first.scope, tenants,
       array([](const auto& r) { return Parameter::bytes(r.identity.fingerprint.digest); }),
       first.identity.fingerprint.rule, first.source.group, first.source.topic,
       array([](const auto& r) { return Parameter(r.source.generation); }),
       array([](const auto& r) { return Parameter(r.source.partition); }),
       array([](const auto& r) { return Parameter(r.source.offset); }), first.retention.count()});
  if (won.size() == requests.size()) {
    for (BatchClaim::Key& key : claim.keys) key.ours = true;
    return claim;
  }
  std::map<std::pair<std::int32_t, std::int64_t>, std::size_t> by_coordinates;
  for (std::size_t i = 0; i < requests.size(); ++i)
    by_coordinates[{requests[i].source.partition, requests[i].source.offset}] = i;
  for (const Row row : won)
    claim
        .keys[by_coordinates.at(
            {row["partition"].as<std::int32_t>(), row["kafka_offset"].as<std::int64_t>()})]
        .ours = true;
  // The statement that lost cannot see the winners' rows; the next one can.
  const std::vector<Parameter> which = {keys, first.scope, tenants};
  for (const Row row : won.empty() ? transaction.roll_back_and_run(sql::kReadBatchKeys, which)
                                   : transaction.run(sql::kReadBatchKeys, which)) {
    BatchClaim::Key& key = claim.keys[order[row["n"].as<std::size_t>() - 1]];
    if (!key.ours) key.holder = holder_of(row);
  }
  if (won.empty()) transaction.add(arm);
  return claim;
}

}  // namespace hapax::store
