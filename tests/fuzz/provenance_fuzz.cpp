// The metadata of an offset commit is anybody's text: what is taken for ours reads as it was
// written.
#include "fuzz.hpp"
#include "kafka/provenance.hpp"

using namespace hapax;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parsed = kafka::Provenance::parse(fuzz::text_of(data, size));
  if (parsed)
    fuzz::require(kafka::Provenance::parse(parsed->text()) == parsed, "ours, and not as written");
  return 0;
}
