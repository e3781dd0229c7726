// What the tests of Protobuf share.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "payload/protobuf/decoder.hpp"

namespace hapax::payload::protobuf {

// The JSON, or "! " and why there is none.
inline std::string decoded(const std::string& schema, const std::string& bytes,
                           const std::vector<int>& indexes = {0},
                           std::vector<SchemaText::Reference> references = {}) {
  try {
    return ProtobufDecoder({"PROTOBUF", schema, std::move(references)})
        .decode({.indexes = indexes, .body = bytes});
  } catch (const NotDecodable& error) {
    return std::string("! ") + error.what();
  }
}

inline void expect_refused(const std::string& text, const std::string& why) {
  EXPECT_TRUE(text.starts_with("! ") && text.find(why) != std::string::npos) << text;
}

}  // namespace hapax::payload::protobuf
