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

// The operators' log is read in psql, which shows what is in it as it is.
TEST(OperatorName, AndAReasonAreOneLineOfText) {
  for (const char* text :
       {"ann\n 18 | bob", "\x1b[2Jbob", "bob\u202enna", "bob\t", "\x80", "\u2028"}) {
    EXPECT_NE(reason_error(text), "") << text;
    EXPECT_THROW(operator_name(text), Stop) << text;
  }
  EXPECT_NE(reason_error(""), "");
  for (const char* text : {"ann", "Ärger mit Çelik & Søn", "銀行は開いている", "بنك"}) {
    EXPECT_EQ(reason_error(text), "") << text;
    EXPECT_EQ(operator_name(text), text);
  }
}

}  // namespace
}  // namespace hapax::app
