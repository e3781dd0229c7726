#include "config/suggest.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace hapax::config {
namespace {

const std::vector<std::string> kKnown = {"lanes", "ordering", "checkpoint_interval", "max",
                                         "max_attempts"};

TEST(Suggest, FindsTheNameThatWasMeant) {
  for (const auto& [typed, meant] : std::vector<std::pair<std::string, std::string>>{
           {"lane", "lanes"},
           {"laens", "lanes"},
           {"Ordering", "ordering"},
           {"maxAttempts", "max_attempts"},
           {"max-atempts", "max_attempts"},
           {"checkpoint.interval", "checkpoint_interval"},
           {"mx", "max"}})
    EXPECT_EQ(closest(typed, kKnown), meant) << typed;
}

TEST(Suggest, IsSilentIfNothingIsNear) {
  for (const char* typed : {"", "threads", "order", "xyz", "maximum_attempts_of_all_kinds"})
    EXPECT_EQ(closest(typed, kKnown), "") << typed;
  EXPECT_EQ(closest(std::string(1'000'000, 'x'), kKnown), "");
  EXPECT_EQ(closest("lanes", {}), "");
}

}  // namespace
}  // namespace hapax::config
