// Who an operator's command notes as its giver.
#include "cli/operator.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

namespace hapax::app {
namespace {

// Without $USER, as in a container or under cron.
TEST(OperatorName, IsTheUserOfTheProcessIfTheEnvironmentNamesNone) {
  const char* const user = std::getenv("USER");
  const std::optional<std::string> before = user == nullptr ? std::nullopt : std::optional(user);
  setenv("USER", "alice", 1);
  EXPECT_EQ(operator_name("bob"), "bob");
  EXPECT_EQ(operator_name(""), "alice");
  setenv("USER", "", 1);
  const std::string of_process = operator_name("");
  unsetenv("USER");
  EXPECT_EQ(operator_name(""), of_process);
  EXPECT_NE(of_process, "");
  EXPECT_NE(of_process, "alice");
  if (before) setenv("USER", before->c_str(), 1);
}

}  // namespace
}  // namespace hapax::app
