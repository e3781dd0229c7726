#include "key/sha256.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace hapax::key {
namespace {

constexpr char kOfNothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr char kOfAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256, GivesTheKnownDigestsEachTime) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(hex(sha256("")), kOfNothing);
    EXPECT_EQ(hex(sha256(std::string_view())), kOfNothing);
    EXPECT_EQ(hex(sha256("abc")), kOfAbc);
  }
}

TEST(Sha256, ServesEachThread) {
  std::string digest;
  std::thread([&] { digest = hex(sha256("abc")); }).join();
  EXPECT_EQ(digest, kOfAbc);
}

TEST(Sha256, WritesHexOfEveryByte) {
  EXPECT_EQ(hex(std::string_view("\x00\x0f\x80\xff", 4)), "000f80ff");
}

}  // namespace
}  // namespace hapax::key
