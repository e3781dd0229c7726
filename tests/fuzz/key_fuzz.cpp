// Two different keys never have one stored text, even if an attacker puts separators into them. The
// same is true of tenants, which are the namespace.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <vector>

#include "fuzz.hpp"
#include "key/key_text.hpp"

using namespace hapax;

namespace {

std::vector<key::Part> parts_of(FuzzedDataProvider& input) {
  std::vector<key::Part> parts(input.ConsumeIntegralInRange<std::size_t>(1, 4));
  for (key::Part& part : parts) {
    if (input.ConsumeBool()) {
      part = {key::Part::Type::json, std::to_string(input.ConsumeIntegral<std::int64_t>())};
    } else {
      part = {key::Part::Type::bytes, input.ConsumeRandomLengthString(64)};
    }
  }
  return parts;
}

bool equal(const std::vector<key::Part>& a, const std::vector<key::Part>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.type == y.type && x.text == y.text;
  });
}

void require_storable(const std::string& stored) {
  fuzz::require(!stored.empty() && stored.size() <= key::kMaxStoredKey, "a stored key's length");
  fuzz::require(std::none_of(stored.begin(), stored.end(),
                             [](char c) { return static_cast<unsigned char>(c) < 0x20; }),
                "a stored key is not printable");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  const auto a = parts_of(input);
  const auto b = parts_of(input);
  const std::string tag = input.ConsumeBool() ? "at" : "";
  const std::string stored_a = key::encode_parts(tag, a);
  require_storable(stored_a);
  fuzz::require((stored_a == key::encode_parts(tag, b)) == equal(a, b), "two composites met");
  const std::string bytes_a = input.ConsumeRandomLengthString(300);
  const std::string bytes_b = input.ConsumeRemainingBytesAsString();
  const std::string stored = key::encode_key(bytes_a);
  require_storable(stored);
  fuzz::require((stored == key::encode_key(bytes_b)) == (bytes_a == bytes_b), "two keys met");
  fuzz::require(stored != stored_a, "a plain key met a composite");
  return 0;
}
