#include <gtest/gtest.h>

#include "kafka/request.hpp"

#if RD_KAFKA_VERSION >= 0x02030000

namespace hapax::kafka {
namespace {

std::string text_of(std::int64_t most, std::int64_t least) {
  const std::unique_ptr<rd_kafka_Uuid_t, Destroyer<rd_kafka_Uuid_destroy>> id(
      rd_kafka_Uuid_new(most, least));
  return kafka::text_of(id.get());
}

// All topics of such a broker would have the same id, also those that were made again.
TEST(TopicId, OfABrokerThatKnowsNoneIsEmpty) {
  EXPECT_EQ(text_of(0, 0), "");
  EXPECT_EQ(kafka::text_of(nullptr), "");
  EXPECT_EQ(text_of(0, 1), "AAAAAAAAAAAAAAAAAAAAAQ");
  EXPECT_NE(text_of(1, 0), "");
}

}  // namespace
}  // namespace hapax::kafka

#endif
