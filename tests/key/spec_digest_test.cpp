#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "key/identity.hpp"

namespace hapax::key {
namespace {

KeySpec base() {
  KeySpec spec;
  spec.scope = "payments";
  spec.sources = {{Source::Kind::header, {"idempotency-key"}, false},
                  {Source::Kind::json, {"/a", "/b"}, false}};
  return spec;
}

TEST(SpecDigest, ChangesWithAllThatDecidesIdentity) {
  const std::vector<std::function<void(KeySpec&)>> changes = {
      [](KeySpec&) {},
      [](KeySpec& s) { s.scope = "refunds"; },
      [](KeySpec& s) { s.sources.pop_back(); },
      [](KeySpec& s) { std::swap(s.sources[0], s.sources[1]); },
      [](KeySpec& s) { s.sources[0].unquote = true; },
      [](KeySpec& s) { s.sources[0].kind = Source::Kind::json; },
      [](KeySpec& s) { s.sources[1].names = {"/a/b"}; },
      [](KeySpec& s) {
        s.sources[1].names = {"/b", "/a"};
      },
      [](KeySpec& s) {
        s.sources[1].names = {"/A", "/b"};
      },
      [](KeySpec& s) {
        s.sources.push_back({Source::Kind::record_key, {}, false});
      },
      [](KeySpec& s) {
        s.sources.push_back({Source::Kind::content_hash, {}, false});
      },
      [](KeySpec& s) {
        s.sources.push_back({Source::Kind::coordinates, {}, false});
      },
      [](KeySpec& s) {
        s.tenant = Source{Source::Kind::json, {"/tenant"}, false};
      },
      [](KeySpec& s) {
        s.sources.insert(s.sources.begin(), {Source::Kind::json, {"/tenant"}, false});
      },
      [](KeySpec& s) { s.missing_key = MissingKey::coordinates; },
      [](KeySpec& s) { s.tombstone = Tombstone::skip; },
      [](KeySpec& s) { s.tombstone = Tombstone::handle; },
  };
  std::set<std::string> digests;
  for (const auto& change : changes) {
    KeySpec spec = base();
    change(spec);
    digests.insert(spec_digest(spec));
  }
  EXPECT_EQ(digests.size(), changes.size());
}

TEST(SpecDigest, StaysIfIdentityStays) {
  KeySpec spec = base();
  spec.sources[0].names = {"Idempotency-Key"};
  spec.fingerprint = {FingerprintRule::Kind::json_without, {"/sent_at"}};
  EXPECT_EQ(spec_digest(spec), spec_digest(base()));
}

// A new release must give running routes their old digest, or every worker is refused at its start.
TEST(SpecDigest, StaysAcrossReleases) {
  EXPECT_EQ(spec_digest(base()),
            "99945e522dade4df1c4555edadf171304a14dbd5d4b5eb2892ceb5dbf68c61ce");
}

}  // namespace
}  // namespace hapax::key
