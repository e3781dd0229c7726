#include "store/connect_error.hpp"

#include <gtest/gtest.h>

namespace hapax::store {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Outages, AreASentenceThatTellsWhatToDo) {
  const Outage full = explain_outage(
      "53100", "ERROR:  could not extend file \"base/1/2\": No space left on device\nHINT: x");
  EXPECT_EQ(full.shown, "the disk of PostgreSQL is full: make room on it (SQLSTATE 53100)");
  EXPECT_TRUE(has(full.line, "No space left on device (the disk of PostgreSQL is full"));
  EXPECT_FALSE(has(full.line, "HINT"));
  EXPECT_TRUE(has(explain_outage("53300", "FATAL: sorry").shown, "max_connections"));
  EXPECT_TRUE(has(explain_outage("25006", "ERROR: read-only").shown, "standby"));
  EXPECT_TRUE(has(explain_outage("57P01", "FATAL: x").shown, "shut down or restarted"));
  EXPECT_TRUE(has(explain_outage("57P03", "FATAL: x").shown, "recovers"));
  EXPECT_TRUE(has(explain_outage("26000", "ERROR: x").line, "session mode"));
  EXPECT_EQ(explain_outage("99999", "ERROR: secret").shown, "SQLSTATE 99999");
}

TEST(Outages, OfAConnectionDoNotSpeakOfTheLibrary) {
  for (const char* const said :
       {"Could not obtain client encoding: not connected.",
        "Lost connection to the database server.", "Could not obtain client encoding."})
    EXPECT_EQ(explain_outage("", said).line, "the connection to PostgreSQL broke") << said;
  EXPECT_EQ(explain_outage("", "Connection refused\nIs it there?").shown, "Connection refused");
}

}  // namespace
}  // namespace hapax::store
