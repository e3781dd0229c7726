// Protobuf's bytes under any schema. The input is a schema, a NUL, bytes.
#include "payload/protobuf/decoder.hpp"

#include "decoder_fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hapax;
  fuzz::decode<payload::ProtobufDecoder>("PROTOBUF", '\0', {0}, fuzz::text_of(data, size));
  return 0;
}
