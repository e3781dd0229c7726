// What `hapax status` tells of calls to the outside.
#include "inspect/calls_state.hpp"

#include <gmock/gmock.h>

namespace hapax::app {
namespace {

using testing::HasSubstr;

TEST(CallsLine, HasNumbersThatAddUp) {
  Json calls = {{"started", 0}, {"answered", 1}, {"unknown", 0}, {"abandoned", 1}};
  EXPECT_THAT(calls_line(calls),
              HasSubstr("0 started, 1 answered (of these 1 without a worker), 0 unknown; `hapax"));
  calls["abandoned"] = 0;
  EXPECT_EQ(calls_line(calls), "calls to the outside: 0 started, 1 answered, 0 unknown");
}

}  // namespace
}  // namespace hapax::app
