// Avro's binary encoding as JSON.
//
// | Avro                       | JSON |
// |----------------------------|------|
// | int, long, float, double   | a number; NaN and infinities are the strings "NaN", "Infinity" |
// | bytes, fixed               | a string, base64 |
// | decimal (bytes, fixed)     | a string with all its digits: "-12.50" |
// | enum                       | a string |
// | record, map                | an object |
// | union of null and one type | null, or the value |
// | any other union            | null, or {"name of the type": value}, as in Avro's own JSON |
//
// Other logical types (timestamp-millis, …) are the numbers and strings that they are written as.
//
// Not avro-c: it allocates what a length field says before it reads, it recurses as deep as the
// bytes say, and it forgets the scale of decimals (docs/lab/2026-11-24-payload-formats.md).
#pragma once

#include <string>

#include "payload/avro_schema.hpp"

namespace hapax::payload {

class AvroDecoder final : public Decoder {
 public:
  // Throws: NotDecodable, if it is no Avro schema.
  explicit AvroDecoder(const SchemaText& schema) : schema_(schema) {}

  std::string decode(const Framed& framed) const override;

 private:
  const AvroSchema schema_;
};

}  // namespace hapax::payload
