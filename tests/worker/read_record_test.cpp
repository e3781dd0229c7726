// The text in which a checkpoint keeps the record below it.
#include "worker/read_record.hpp"

#include <gtest/gtest.h>

namespace hapax::worker {
namespace {

// Its size in memory may be another one in the next build.
TEST(ReadRecord, ComesBackFromItsTextButForItsSize) {
  EXPECT_EQ(ReadRecord::parse(ReadRecord{1, 2, 3, 120}.text()), (ReadRecord{1, 2, 3, 0}));
  const ReadRecord read{2, 41, 1795548286966};
  EXPECT_EQ(read.text(), "2/41/1795548286966");
  EXPECT_EQ(ReadRecord::parse(read.text()), read);
  const ReadRecord without_time{1, 0, {}};
  EXPECT_EQ(without_time.text(), "1/0/");
  EXPECT_EQ(ReadRecord::parse(without_time.text()), without_time);
}

TEST(ReadRecord, IsNothingFromAnotherText) {
  for (const char* text : {"", "1", "1/2", "/2/3", "1//3", "a/2/3", "1/2/x", "1/2/3/", "1/2/3/4",
                           "99999999999/2/3", " 1/2/3"})
    EXPECT_EQ(ReadRecord::parse(text), std::nullopt) << text;
}

TEST(ReadRecord, IsComparedIfItIsOfTheLogThatStartsAndNotFarBelow) {
  const auto at = [](std::int64_t offset, std::int32_t generation = 2) {
    return ReadRecord{generation, offset, {}, 1};
  };
  EXPECT_EQ(comparable({at(5002), at(4999), at(3999), at(3998), at(4500, 1)}, 2, 4000, 5000),
            (std::vector{at(4999), at(5002)}));
  EXPECT_EQ(comparable({at(4000), at(3999)}, 2, 0, 5000), std::vector{at(4000)});
}

}  // namespace
}  // namespace hapax::worker
