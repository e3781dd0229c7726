// What an operator reads who has mistyped something: a line each, and how to mend it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sandbox/temporary_folder.hpp"
#include "support/command.hpp"

namespace hapax::support {
namespace {

using testing::HasSubstr;

TEST(Mistakes, OfAConfigurationAreALineEachInCheck) {
  const sandbox::TemporaryFolder folder("mistakes");
  const auto config = folder.path() / "worker.json";
  std::ofstream(config) << R"({"kafka": {"bootstrap.servers": "b:9092", "group.id": "g"},
    "postgres": {"url": "postgresql://db/payments"},
    "worker": {"lane": 8, "queue": {"bytes": "64 potatoes"}},
    "routes": [{"topic": "t", "handler": "h", "key": {"header": "k"}, "batch": 0}]})";
  const Said said = hapax({"check"}, config);
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text,
              HasSubstr("FAIL  configuration: worker.lane: is unknown; did you mean lanes?"));
  EXPECT_THAT(said.text,
              HasSubstr("FAIL  configuration: worker.queue.bytes: found \"64 potatoes\""));
  EXPECT_THAT(said.text, HasSubstr("\nFAIL  configuration: routes[0].batch: found 0; allowed"));
  EXPECT_THAT(said.text, Not(HasSubstr("\\x0a")));
}

TEST(Mistakes, InACommandNameTheNearestOne) {
  const Said said = hapax({"statsu"}, "worker.json");
  EXPECT_EQ(said.code, 2);
  EXPECT_THAT(said.text,
              HasSubstr("there is no command \"statsu\"; did you mean status? There are run"));
  const Said deeper = hapax({"dead", "lst"}, "worker.json");
  EXPECT_EQ(deeper.code, 2);
  EXPECT_THAT(deeper.text,
              HasSubstr("there is no command \"lst\"; did you mean list? There are list"));
}

}  // namespace
}  // namespace hapax::support
