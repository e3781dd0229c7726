// Identity from any headers, record key and payload. A message has the same name in any spelling of
// a header's name. If a header comes twice with one value, the name stays the same. With two values
// there is no name.
#include <fuzzer/FuzzedDataProvider.h>

#include <optional>
#include <vector>

#include "fuzz.hpp"
#include "key/identity.hpp"

using namespace hapax;

namespace {

using Headers = std::vector<std::pair<std::string, std::optional<std::string>>>;

key::KeySpec spec_of(FuzzedDataProvider& input) {
  using Kind = key::Source::Kind;
  key::KeySpec spec;
  spec.scope = "payments";
  spec.sources = {{Kind::header, {"idempotency-key"}, input.ConsumeBool()}};
  if (input.ConsumeBool()) spec.sources = {{Kind::header, {"ce_source", "ce_id"}, false}};
  if (input.ConsumeBool()) spec.sources.push_back({Kind::json, {"/id", "/at/0"}, false});
  if (input.ConsumeBool()) spec.sources.push_back({Kind::record_key, {}, false});
  if (input.ConsumeBool()) spec.tenant = key::Source{Kind::header, {"tenant"}, false};
  if (input.ConsumeBool()) spec.missing_key = key::MissingKey::coordinates;
  if (input.ConsumeBool()) spec.fingerprint = {key::FingerprintRule::Kind::json_without, {"/at"}};
  return spec;
}

Headers headers_of(FuzzedDataProvider& input) {
  Headers headers(input.ConsumeIntegralInRange<std::size_t>(0, 6));
  for (auto& [name, value] : headers) {
    name = input.PickValueInArray(
        {"idempotency-key", "Idempotency-Key", "ce_source", "ce_id", "tenant", "TENANT"});
    if (input.ConsumeBool()) value = input.ConsumeRandomLengthString(40);
  }
  return headers;
}

key::Derived identify(const key::KeySpec& spec, const Headers& headers,
                      const std::optional<std::string>& record_key,
                      const std::optional<std::string>& payload) {
  std::vector<Header> views;
  for (const auto& [name, value] : headers) views.push_back({name, value});
  Message::Parts parts;
  parts.coordinates = {"payments", 3, 42};
  parts.key = record_key;
  parts.payload = payload;
  parts.headers = views;
  return key::identify(spec, Message(parts), 1);
}

bool same(const key::Derived& a, const key::Derived& b) {
  if (a.index() != b.index()) return false;
  if (const auto* refusal = std::get_if<key::Refusal>(&a))
    return refusal->reason == std::get<key::Refusal>(b).reason;
  const auto* identity = std::get_if<key::Identity>(&a);
  if (identity == nullptr) return true;
  const auto& other = std::get<key::Identity>(b);
  return identity->key == other.key && identity->tenant == other.tenant &&
         identity->fingerprint == other.fingerprint;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  const key::KeySpec spec = spec_of(input);
  const Headers headers = headers_of(input);
  std::optional<std::string> record_key, payload;
  if (input.ConsumeBool()) record_key = input.ConsumeRandomLengthString(40);
  if (input.ConsumeBool()) payload = input.ConsumeRemainingBytesAsString();
  const key::Derived derived = identify(spec, headers, record_key, payload);

  Headers shouted = headers;
  for (auto& [name, value] : shouted)
    for (char& c : name)
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  fuzz::require(same(derived, identify(spec, shouted, record_key, payload)),
                "a name's case counts");

  Headers twice = headers;
  twice.insert(twice.end(), headers.begin(), headers.end());
  fuzz::require(same(derived, identify(spec, twice, record_key, payload)),
                "a header that comes twice counts");

  const auto* identity = std::get_if<key::Identity>(&derived);
  if (identity == nullptr) return 0;
  fuzz::require(!identity->key.empty() && identity->key.size() <= 200, "a stored key's length");
  Headers contradicted = headers;
  for (const auto& [name, value] : headers)
    if (value) contradicted.emplace_back(name, *value + "x");
  const auto second = identify(spec, contradicted, record_key, payload);
  const auto* other = std::get_if<key::Identity>(&second);
  fuzz::require(
      other == nullptr || (other->key == identity->key && other->tenant == identity->tenant),
      "a contradicted header made another name");
  return 0;
}
