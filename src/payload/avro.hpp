// Avro's binary encoding as JSON.
//
// - int, long, float, double: a number; NaN and infinities are the strings "NaN", "Infinity"
// - bytes, fixed: a string, base64; a schema that is nothing but bytes is refused
// - decimal (bytes, fixed): a string with all its digits: "-12.50"
// - enum: a string
// - record, map: an object
// - union of null and one type: null, or the value
// - any other union: null, or {"name of the type": value}, as in Avro's own JSON
//
// Values of other logical types (timestamp-millis, …) are numbers and strings, as Avro writes them.
//
// hapax does not use avro-c, for three reasons. It trusts a length field and allocates before it
// reads. Its recursion is as deep as the payload asks for. It loses the scale of decimals
// (docs/lab/2026-11-24-payload-formats.md).
#pragma once

#include <string>

#include "payload/avro_schema.hpp"

namespace hapax::payload {

class AvroDecoder final : public Decoder {
 public:
  // Throws: NotDecodable, if the text is not an Avro schema, or is one of bytes alone.
  explicit AvroDecoder(const SchemaText& schema);

  std::string decode(const Framed& framed) const override;

 private:
  const AvroSchema schema_;
};

}  // namespace hapax::payload
