#include "gate/open_files.hpp"

#include <gtest/gtest.h>

namespace hapax::gate {
namespace {

TEST(OpenFiles, ConnectionsLeaveFilesToTheRestOfTheGate) {
  config::Gate gate;
  gate.lanes = 8;
  gate.limits.connections = 10'000;
  EXPECT_EQ(connections_that_fit(gate, 1'000'000), 10'000U);
  EXPECT_EQ(connections_that_fit(gate, 10'108), 10'000U);
  EXPECT_EQ(connections_that_fit(gate, 10'107), 9'999U);
  EXPECT_EQ(connections_that_fit(gate, 1'024), 916U);
  EXPECT_EQ(connections_that_fit(gate, 100), 50U);
}

}  // namespace
}  // namespace hapax::gate
