// A Protobuf schema with what it imports, by libprotobuf.
#pragma once

#include <google/protobuf/descriptor.h>

#include <map>
#include <vector>

#include "payload/decoder.hpp"

namespace hapax::payload::protobuf {

// Thread safety: immutable.
class Schema {
 public:
  // `schema`: the source of a .proto file; or a FileDescriptorProto, base64, as Confluent's
  // serializer for Python registers it. So are its references.
  // Throws: NotDecodable: why it cannot be used; std::bad_alloc.
  explicit Schema(const SchemaText& schema);
  Schema(const Schema&) = delete;
  Schema& operator=(const Schema&) = delete;

  // The message that Confluent's indexes name. Precondition: they are not empty.
  // Throws: NotDecodable, if there is none, or if serializers count differently up to it.
  const google::protobuf::Descriptor& message(const std::vector<int>& indexes) const;

  // Null: the message has no field with this number, and no extension.
  const google::protobuf::FieldDescriptor* field(const google::protobuf::Descriptor& message,
                                                 int number) const;

  // The fields that proto2 requires; null: none. Noted once, because a message may have thousands
  // of other fields.
  const std::vector<const google::protobuf::FieldDescriptor*>* required(
      const google::protobuf::Descriptor& message) const;

 private:
  void note_required(const google::protobuf::Descriptor& message);

  google::protobuf::DescriptorPool pool_;
  const google::protobuf::FileDescriptor* file_ = nullptr;
  std::map<const google::protobuf::Descriptor*,
           std::vector<const google::protobuf::FieldDescriptor*>>
      required_;
};

}  // namespace hapax::payload::protobuf
