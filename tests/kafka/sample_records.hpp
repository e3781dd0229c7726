// Records with everything that can be told apart, and the check that it arrives so.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/producer.hpp"
#include "support/read_records.hpp"

namespace hapax::support {

inline std::vector<Outgoing> sample_records(const std::string& topic) {
  using namespace std::string_literals;
  return {
      {topic, "payload", "key", {{"h", "1"}, {"h", std::nullopt}, {"h", ""}}, 0, 1'700'000'000'123},
      {topic, "", "", {}, 0},
      {topic, std::nullopt, "tombstone", {}, 0},
      {topic, "\0\xff"s, std::nullopt, {}, 0},
  };
}

inline void expect_equal(const std::vector<Incoming>& found, const std::vector<Outgoing>& sent) {
  ASSERT_EQ(found.size(), sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(found[i].payload, sent[i].payload) << i;
    EXPECT_EQ(found[i].key, sent[i].key) << i;
    EXPECT_EQ(found[i].headers, sent[i].headers) << i;
    if (sent[i].timestamp_ms != 0) {
      EXPECT_EQ(found[i].timestamp_ms, sent[i].timestamp_ms) << i;
    }
  }
}

}  // namespace hapax::support
