#include "payload/framing.hpp"

#include <gtest/gtest.h>

#include "key/sample_message.hpp"

namespace hapax::payload {
namespace {

using namespace std::string_literals;
using key::SampleMessage;

const std::string kGuid = "\x01\x89\x79\x1c\x0f\x64\x01\x4d\x1b\x8c\x9f\x5b\x0a\x2e\x33\x44\x55"s;

// "path|indexes|body", or the refusal.
std::string read(const SampleMessage& sample, bool has_indexes = false) {
  return sample.with([&](const Message& message) {
    const auto framed = unframe(message, has_indexes);
    if (const auto* const error = std::get_if<NotFramed>(&framed)) return error->why;
    const Framed& found = std::get<Framed>(framed);
    std::string text = found.schema + "|";
    for (const int index : found.indexes) text += std::to_string(index) + ",";
    return text + "|" + std::string(found.body);
  });
}

TEST(Framing, ReadsAnIdAndAGuidBeforeThePayload) {
  EXPECT_EQ(read({.payload = "\0\0\0\x01\x02{}"s}), "/schemas/ids/258||{}");
  EXPECT_EQ(read({.payload = "\0\xff\xff\xff\xff"s}), "/schemas/ids/4294967295||");
  EXPECT_EQ(read({.payload = kGuid + "{}"}),
            "/schemas/guids/89791c0f-6401-4d1b-8c9f-5b0a2e334455||{}");
}

TEST(Framing, ReadsTheHeaderRatherThanThePayload) {
  const std::string guid = "/schemas/guids/89791c0f-6401-4d1b-8c9f-5b0a2e334455||";
  EXPECT_EQ(read({.headers = {{"__value_schema_id", kGuid}}, .payload = "\0\0\0\0\1x"s}),
            guid + "\0\0\0\0\1x"s);
  EXPECT_EQ(read({.headers = {{"__value_schema_id", "\0\0\0\0\7"s}}, .payload = ""}),
            "/schemas/ids/7||");
  EXPECT_EQ(read({.headers = {{"__value_schema_id", std::nullopt}}, .payload = "\0\0\0\0\7x"s}),
            "/schemas/ids/7||x");
  EXPECT_EQ(read({.headers = {{"__value_schema_id", kGuid}, {"__value_schema_id", kGuid}}}),
            guid + "{}");
}

TEST(Framing, RefusesWhatNamesNoSchemaOrTwo) {
  for (const std::string& payload : {""s, "{}"s, "\0\0\0\1"s, "\2\0\0\0\1x"s, kGuid.substr(0, 16)})
    EXPECT_NE(read({.payload = payload}).find("does not begin"), std::string::npos) << payload;
  EXPECT_NE(read({.headers = {{"__value_schema_id", kGuid}, {"__value_schema_id", "\0\0\0\0\7"s}}})
                .find("different values"),
            std::string::npos);
  for (const std::string& header : {""s, kGuid + "x", "\0\0\0\0\7x"s})
    EXPECT_NE(read({.headers = {{"__value_schema_id", header}}}).find("is not the id"),
              std::string::npos);
}

TEST(Framing, ReadsTheIndexesOfAProtobufMessage) {
  EXPECT_EQ(read({.payload = "\0\0\0\0\7\0x"s}, true), "/schemas/ids/7|0,|x");
  EXPECT_EQ(read({.payload = "\0\0\0\0\7\x04\x02\x06x"s}, true), "/schemas/ids/7|1,3,|x");
  for (const std::string& indexes : {""s, "\x02"s, "\x01"s, "\x02\x01"s, "\xff\xff\xff\xff"s})
    EXPECT_NE(read({.payload = "\0\0\0\0\7"s + indexes}, true).find("no indexes"),
              std::string::npos);
}

}  // namespace
}  // namespace hapax::payload
