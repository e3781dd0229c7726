// Avro's bytes under any schema. The input is a schema, a line break, bytes.
#include "payload/avro.hpp"

#include "decoder_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hapax;
  fuzz::decode<payload::AvroDecoder>("AVRO", '\n', {}, fuzz::text_of(data, size));
  return 0;
}
