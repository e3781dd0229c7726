#include "kafka/provenance.hpp"

#include <gtest/gtest.h>

namespace hapax::kafka {
namespace {

TEST(Provenance, ReadsWhatItWrote) {
  for (const bool first : {false, true}) {
    for (const char* wal : {"", "1/0/16B3748"}) {
      const Provenance written{"6d1c", "MkU3OEVBNTcwNTJENDM2Qg", 42, first, wal};
      EXPECT_EQ(Provenance::parse(written.text()), written);
    }
  }
}

// Partitions whose route calls nothing keep the text that older releases read.
TEST(Provenance, WithoutAPositionReadsAsItAlwaysDid) {
  EXPECT_EQ((Provenance{"a", "b", 7}.text()), "hapax/1 store=a cluster=b epoch=7");
  EXPECT_EQ((Provenance{"a", "b", 7, true}.text()), "hapax/1 store=a cluster=b epoch=7 first=1");
  EXPECT_EQ(Provenance::parse("hapax/1 store=a cluster=b epoch=7")->wal, "");
}

TEST(Provenance, TakesNothingElseForOurs) {
  for (const char* text :
       {"", "hapax/1", "hapax/1 ", "hapax/2 store=a cluster=b epoch=1", "hapax/1 store=a cluster=b",
        "hapax/1 store=a cluster=b epoch=", "hapax/1 store=a cluster=b epoch=1x",
        "hapax/1 store=a epoch=1", "hapax/1 store=a cluster=b epoch=1 more",
        "hapax/1 store=a cluster=b epoch=1 first=0", "hapax/1 store=a cluster=b epoch=1 first=1 x",
        "hapax/1 store=a cluster=b epoch=1 wal=", "hapax/1 store=a cluster=b epoch=1 wal=1/0/1 x",
        "hapax/1 store=a cluster=b epoch=1 first=1 wal=1/0/1", "{\"epoch\":1}"})
    EXPECT_FALSE(Provenance::parse(text).has_value()) << text;
}

}  // namespace
}  // namespace hapax::kafka
