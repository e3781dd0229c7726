// The text of one Protobuf schema, parsed.
#pragma once

#include <google/protobuf/descriptor.pb.h>

#include <string>

namespace hapax::payload::protobuf {

// Without what decoding does not need: comments, positions, services, most options.
// Throws: NotDecodable, if it is no Protobuf schema, or too large or deep. Thread safety: pure.
google::protobuf::FileDescriptorProto parse_source(const std::string& text,
                                                   const std::string& name);

}  // namespace hapax::payload::protobuf
