// What the payloads of one route are: decodes them for keys, fingerprints and handlers, and checks
// them against the route's schema.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "config/config.hpp"
#include "hapax/message.hpp"
#include "key/identity.hpp"
#include "payload/decoder.hpp"
#include "payload/http.hpp"
#include "payload/json_schema.hpp"
#include "payload/reading.hpp"
#include "payload/registry.hpp"
#include "sync/mutex.hpp"

namespace hapax::payload {

// Thread safety: all of it.
class Reader {
 public:
  // Decoders that are kept; one more takes the place of the one that was used least recently.
  static constexpr std::size_t kMaxDecoders = 200;

  // Throws: std::runtime_error if payload.schema cannot be used; how to fix it.
  explicit Reader(const config::Payload& payload);
  Reader(const config::Payload& payload, HttpGet get);

  // Whether payloads are decoded, so that a message must be read before its key is derived.
  bool decodes() const { return format_ != config::Payload::Format::plain; }

  // Throws: std::bad_alloc. Blocks: if the schema is not known, as Registry::find().
  // Precondition: decodes().
  Reading read(const Message& message) const;

  // The same without asking the registry. Nothing: it must be asked.
  std::optional<Reading> read_at_once(const Message& message) const;

  // Whether the registry answered when it was asked last. Nothing: there is none.
  std::optional<bool> registry_is_up() const;

  // Why the handler must not get the message: its payload violates the schema. Nothing: it may.
  // Precondition: if decodes(), the message is decoded.
  std::optional<key::Refusal> violation(const Message& message) const;

 private:
  // A schema that cannot be used is remembered as the reason.
  using Known = std::variant<std::shared_ptr<const Decoder>, std::string>;
  struct Kept {
    Known known;
    std::uint64_t last_use = 0;
  };

  std::variant<Reading, Framed> frame(const Message& message) const;
  std::optional<Known> known(const std::string& path) const;
  Known learn(const std::string& path, Known known) const;
  static Reading decoded(const Known& known, const Framed& framed);

  const config::Payload::Format format_;
  const std::shared_ptr<const JsonSchema> schema_;  // null: none
  // One lane asks, and the others find what it learned.
  mutable sync::Mutex asking_;
  const std::unique_ptr<Registry> registry_ HAPAX_PT_GUARDED_BY(asking_);  // null: none
  mutable std::atomic<bool> registry_is_up_{true};
  mutable sync::Mutex mutex_;
  mutable std::map<std::string, Kept> decoders_ HAPAX_GUARDED_BY(mutex_);  // by Framed::schema
  mutable std::uint64_t uses_ HAPAX_GUARDED_BY(mutex_) = 0;
};

// Null if there is nothing to decode and to check. Throws: as Reader().
std::shared_ptr<const Reader> make_reader(const config::Payload& payload);

// Decodes the message if need be. `reader` may be null. If `may_ask` is false, a message whose
// schema is not known waits, and the registry is not asked. Throws, Blocks: as Reader::read().
std::unique_ptr<ReadMessage> read_message(const Reader* reader, const Message& message,
                                          bool may_ask = true);

}  // namespace hapax::payload
