#include "store/message/position_claim.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "sql_statements.hpp"
#include "store/array.hpp"
#include "store/quote.hpp"

namespace hapax::store {
namespace {

// What a batch settles of a partition.
struct OfPartition {
  const ClaimRequest* any = nullptr;
  std::int64_t last = -1;
  std::vector<std::int64_t> offsets;
};

// How far the others are below the last; NULL: there are none.
void add_earlier(ArrayLiteral& to, const OfPartition& its) {
  std::string earlier = "{";
  for (const std::int64_t offset : its.offsets)
    if (offset != its.last) append_array_element(earlier, its.last - offset);
  if (earlier.size() == 1)
    to.add_null();
  else
    to.add(earlier + "}");
}

}  // namespace

BatchClaim claim_positions(Transaction& transaction, std::span<const ClaimRequest> requests) {
  Session& session = transaction.session();
  prepare_completion(session);
  BatchClaim claim;
  claim.nonce = session.next_nonce();
  claim.keys.resize(requests.size());
  std::map<std::int32_t, OfPartition> by_partition;
  for (const ClaimRequest& request : requests) {
    OfPartition& its = by_partition[request.source.partition];
    its.any = &request;
    its.last = std::max(its.last, request.source.offset);
    its.offsets.push_back(request.source.offset);
  }
  ArrayLiteral partitions, generations, epochs, lasts, earlier;
  for (const auto& [partition, its] : by_partition) {
    partitions.add(std::int64_t{partition});
    generations.add(std::int64_t{its.any->source.generation});
    epochs.add(its.any->epoch);
    lasts.add(its.last);
    add_earlier(earlier, its);
  }
  const Source& source = requests.front().source;
  const std::string literals[] = {text_literal(claim.nonce),     text_literal(source.group),
                                  text_literal(source.topic),    std::move(partitions).text(),
                                  std::move(generations).text(), std::move(epochs).text(),
                                  std::move(lasts).text(),       std::move(earlier).text()};
  const Rows rows = transaction.run(session.execute_literals(sql::kClaimPositions, literals));
  std::set<std::int32_t> taken;
  for (const Row row : rows) taken.insert(row["partition"].as<std::int32_t>());
  for (std::size_t i = 0; i < requests.size(); ++i)
    claim.keys[i].ours = taken.contains(requests[i].source.partition);
  return claim;
}

bool is_settled(Session& session, const Source& source) {
  const std::string ask = session.execute(sql::kIsSettled, source.parameters());
  Transaction none(session);
  return none.run_outside(ask)[0]["settled"].as<bool>();
}

}  // namespace hapax::store
