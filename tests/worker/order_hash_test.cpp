#include "worker/order_hash.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hapax::worker {
namespace {

constexpr OrderHash kPublished(0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL);

// The vectors that come with the paper: the bytes 0, 1, 2, … of each length.
TEST(OrderHash, IsSipHash24) {
  std::string bytes;
  EXPECT_EQ(kPublished(bytes), 0x726fdb47dd0e0e31ULL);
  bytes.push_back(0);
  EXPECT_EQ(kPublished(bytes), 0x74f839c593dc67fdULL);
  for (char c = 1; c < 15; ++c) bytes.push_back(c);
  EXPECT_EQ(kPublished(bytes), 0xa129ca6149be45e5ULL);
}

TEST(OrderHash, DependsOnItsKey) {
  EXPECT_NE(kPublished("key"), OrderHash(1, 2)("key"));
  EXPECT_EQ(kPublished("key"), kPublished("key"));
}

}  // namespace
}  // namespace hapax::worker
