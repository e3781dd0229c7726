// The one crash of the network that leaves doubt: COMMIT was sent, and its answer never came.
#include <gtest/gtest.h>

#include "support/cutting_proxy.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using Cut = test::CuttingProxy::Cut;

constexpr int kPaymentsInDoubt = 40;

class CommitCut : public testing::TestWithParam<Cut> {};

TEST_P(CommitCut, IsAskedForAgainAndBookedOnce) {
  Site site = Site::on_mock_cluster(2);
  test::CuttingProxy proxy(test::postgres().port());
  proxy.cut_next(";COMMIT", GetParam());
  Producer producer(site.bootstrap());
  site.pay(producer, 0, kPaymentsInDoubt);
  const std::string url = test::through_port(site.database().worker(), proxy.port()).url;
  const auto worker = site.worker("w", {{"postgres", {{"url", url}}}});
  site.await_no_lag();

  EXPECT_EQ(proxy.cuts(), 1);
  site.expect_exact(kPaymentsInDoubt);
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.attempts"), "0")
      << "the network's failure is not the message's";
  expect_leaves(*worker);
}

INSTANTIATE_TEST_SUITE_P(Network, CommitCut,
                         testing::Values(Cut::before_forwarding, Cut::after_forwarding,
                                         Cut::after_answer));

}  // namespace
}  // namespace hapax::support
