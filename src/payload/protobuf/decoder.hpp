// Protobuf's messages as JSON.
//
// docs/configuration.md has the table. It is Protobuf's own JSON but for two things: members are
// named as in the schema, and integers of 64 bits are numbers. A change that keeps the bytes, such
// as int32 to int64 or a json_name, keeps this JSON, too, and so the fingerprint.
//
// Not DynamicMessage and its JsonFormat: 200 kB of empty messages took 795 MB, because each is
// allocated with all of its fields (docs/lab/2026-11-25-protobuf.md).
#pragma once

#include <memory>
#include <string>

#include "payload/decoder.hpp"

namespace hapax::payload {

namespace protobuf {
class Schema;
}

// Strict: a field that the schema does not know, or a value that its field cannot hold, is not
// decodable. The fingerprint would not see it, or see another value.
class ProtobufDecoder final : public Decoder {
 public:
  // Throws: NotDecodable, if it is no Protobuf schema.
  explicit ProtobufDecoder(const SchemaText& schema);
  ~ProtobufDecoder() override;

  std::string decode(const Framed& framed) const override;
  std::string type(const Framed& framed) const override;

 private:
  const std::unique_ptr<const protobuf::Schema> schema_;
};

}  // namespace hapax::payload
