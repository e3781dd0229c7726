// The files that a Protobuf schema may import without a reference in the registry. Confluent's
// serializers register none for them.
#pragma once

#include <google/protobuf/descriptor.pb.h>

#include <optional>
#include <string>
#include <string_view>

namespace hapax::payload::protobuf {

// google/protobuf/timestamp.proto and the others that come with libprotobuf. A registry's file of
// such a name is not used. Nothing: it is none of them.
// Thread safety: pure.
std::optional<google::protobuf::FileDescriptorProto> library_file(const std::string& name);
bool is_library_file(std::string_view name);

// The source of google/type/…, confluent/meta.proto and confluent/type/…. Nothing: it is none of
// them. Thread safety: pure.
std::optional<std::string> bundled_source(std::string_view name);

}  // namespace hapax::payload::protobuf
