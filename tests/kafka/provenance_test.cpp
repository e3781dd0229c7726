#include "kafka/provenance.hpp"

#include <gtest/gtest.h>

namespace hapax::kafka {
namespace {

TEST(Provenance, ReadsWhatItWrote) {
  for (const bool first : {false, true}) {
    const Provenance written{"6d1c", "MkU3OEVBNTcwNTJENDM2Qg", 42, first};
    EXPECT_EQ(Provenance::parse(written.text()), written);
  }
}

TEST(Provenance, TakesNothingElseForOurs) {
  for (const char* text :
       {"", "hapax/1", "hapax/1 ", "hapax/2 store=a cluster=b epoch=1", "hapax/1 store=a cluster=b",
        "hapax/1 store=a cluster=b epoch=", "hapax/1 store=a cluster=b epoch=1x",
        "hapax/1 store=a epoch=1", "hapax/1 store=a cluster=b epoch=1 more",
        "hapax/1 store=a cluster=b epoch=1 first=0", "hapax/1 store=a cluster=b epoch=1 first=1 x",
        "{\"epoch\":1}"})
    EXPECT_FALSE(Provenance::parse(text).has_value()) << text;
}

}  // namespace
}  // namespace hapax::kafka
