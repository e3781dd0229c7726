// The fields of one message, as its bytes hold them. Protobuf's rules tell which of several values
// counts, and which value counts as not there.
#pragma once

#include <google/protobuf/descriptor.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "payload/protobuf/schema.hpp"
#include "payload/protobuf/wire.hpp"

namespace hapax::payload::protobuf {

struct Field {
  const google::protobuf::FieldDescriptor* descriptor = nullptr;
  WireField wire;
  // Numbers of a list, without a field for each.
  bool is_packed() const { return descriptor->is_packable() && wire.type == WireType::bytes; }
};

// All of one field, in the order of the bytes; never empty.
using Values = std::span<const Field>;

// By the fields' numbers; fields that count as not there are left out. Of a oneof only the last
// member is there. Lifetime: they point into `bytes`. Memory: at most 60 times the bytes.
// Throws: NotDecodable. Thread safety: pure.
std::vector<Field> fields_of(const Schema& schema, const google::protobuf::Descriptor& type,
                             std::string_view bytes);

// Calls `use` with the values of each field.
template <class Use>
void for_each_field(const std::vector<Field>& fields, const Use& use) {
  for (std::size_t first = 0, last = 0; first < fields.size(); first = last) {
    while (last < fields.size() && fields[last].descriptor == fields[first].descriptor) ++last;
    use(Values(fields).subspan(first, last - first));
  }
}

// What `scalar` is as a value of the field. Throws: NotDecodable, if the field cannot hold it.
std::int64_t signed_of(const google::protobuf::FieldDescriptor& field, std::uint64_t scalar);
std::uint64_t unsigned_of(const google::protobuf::FieldDescriptor& field, std::uint64_t scalar);

// The values of one message field are parts of one message. `joined` keeps them if there are more.
std::string_view joined_bytes(Values values, std::string& joined);

// How a value of the field is written by itself, rather than in a packed list.
WireType wire_type_of(const google::protobuf::FieldDescriptor& field);

}  // namespace hapax::payload::protobuf
