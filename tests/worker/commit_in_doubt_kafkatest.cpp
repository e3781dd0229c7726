// The one crash of the network that leaves doubt: COMMIT was sent, and its answer never came.
#include <gtest/gtest.h>

#include "support/cutting_proxy.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using Cut = test::CuttingProxy::Cut;

constexpr int kPaymentsInDoubt = 40;

struct CutCase {
  Cut cut;
  int batch = 1;
  bool by_position = false;
};

void PrintTo(const CutCase& cut, std::ostream* out) {
  *out << static_cast<int>(cut.cut) << " batch " << cut.batch << " position " << cut.by_position;
}

class CommitCut : public testing::TestWithParam<CutCase> {};

TEST_P(CommitCut, IsAskedForAgainAndBookedOnce) {
  const auto [cut, batch, by_position] = GetParam();
  Site site = Site::on_mock_cluster(2);
  test::CuttingProxy proxy(test::postgres().port());
  proxy.cut_next(";COMMIT", cut);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, kPaymentsInDoubt);
  const std::string url = test::through_port(site.database().worker(), proxy.port()).url;
  nlohmann::json patch = {{"postgres", {{"url", url}}}, {"route", {{"batch", batch}}}};
  if (by_position) patch["route"]["key"] = "position";
  const auto worker = site.worker("w", patch);
  site.await_no_lag();

  EXPECT_EQ(proxy.cuts(), 1);
  site.expect_exact(kPaymentsInDoubt, 0, by_position);
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.attempts"), "0")
      << "the network's failure is not the message's";
  expect_leaves(*worker);
}

INSTANTIATE_TEST_SUITE_P(Network, CommitCut,
                         testing::Values(CutCase{Cut::before_forwarding},
                                         CutCase{Cut::after_forwarding}, CutCase{Cut::after_answer},
                                         CutCase{Cut::before_forwarding, 1, true},
                                         CutCase{Cut::after_answer, 1, true},
                                         CutCase{Cut::after_answer, 20, true}));

}  // namespace
}  // namespace hapax::support
