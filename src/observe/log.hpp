// The log: one line an event, to stderr, for people (text) or machines (JSON).
//
//   log::info("partition_assigned", {{"topic", topic}, {"partition", 3}}, "partition assigned");
//   2025-11-21T09:05:00.123456Z info    partition_assigned: partition assigned topic=payments
//   partition=3
//   {"time":"2025-11-21T09:05:00.123456Z","level":"info","event":"partition_assigned",…}
//
// An event has a stable name to search and alert by, a sentence for people, and typed fields. Never
// give it payloads, header values or connection strings: logs travel further than the data may.
//
// Hides spdlog. Thread safety: everything here may be called from any thread.
// Blocks: as long as stderr does; a full pipe without a reader stops the caller.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <variant>

#include "observe/escape.hpp"

namespace hapax::observe::log {

enum class Level : std::uint8_t { debug, info, warning, error };
enum class Format : std::uint8_t { text, json };

// One named value of an event. If it is nothing or an empty text, the line has no such field. Holds
// views only: a temporary string lives until the call returns.
// Precondition: `name` is a word chosen in code, and not time, level, event or sentence.
class Field {
 public:
  using Value =
      std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view, std::monostate>;

  Field(std::string_view name, bool value) : name_(name), value_(value) {}
  Field(std::string_view name, std::signed_integral auto value)
      : name_(name), value_(static_cast<std::int64_t>(value)) {}
  Field(std::string_view name, std::unsigned_integral auto value)
      : name_(name), value_(static_cast<std::uint64_t>(value)) {}
  Field(std::string_view name, std::floating_point auto value)
      : name_(name), value_(static_cast<double>(value)) {}
  Field(std::string_view name, std::string_view value) : name_(name), value_(value) {}
  Field(std::string_view name, const char* value) : Field(name, std::string_view(value)) {}
  Field(std::string_view name, std::same_as<std::optional<std::string_view>> auto value)
      : name_(name), value_(value ? Value(*value) : Value(std::monostate())) {}

  bool is_given() const {
    const auto* const text = std::get_if<std::string_view>(&value_);
    return text != nullptr ? !text->empty() : !std::holds_alternative<std::monostate>(value_);
  }

  std::string_view name() const { return name_; }
  const Value& value() const { return value_; }

 private:
  std::string_view name_;
  Value value_;
};

using Fields = std::initializer_list<Field>;

// Events below `level` are dropped. Until the first call: info, text. Colours on a terminal only.
// Call it before other threads log, or a line may come out half in each format.
void set_up(Level level, Format format);

namespace detail {
inline std::atomic<Level> threshold{Level::info};
void write(Level level, std::string_view event, Fields fields, std::string_view sentence);
}  // namespace detail

// Whether an event of this level would be written; one atomic load. For fields that are expensive
// to compute.
inline bool enabled(Level level) {
  return level >= detail::threshold.load(std::memory_order_relaxed);
}

inline void debug(std::string_view event, Fields fields, std::string_view sentence) {
  if (enabled(Level::debug)) detail::write(Level::debug, event, fields, sentence);
}
inline void info(std::string_view event, Fields fields, std::string_view sentence) {
  if (enabled(Level::info)) detail::write(Level::info, event, fields, sentence);
}
inline void warning(std::string_view event, Fields fields, std::string_view sentence) {
  if (enabled(Level::warning)) detail::write(Level::warning, event, fields, sentence);
}
inline void error(std::string_view event, Fields fields, std::string_view sentence) {
  if (enabled(Level::error)) detail::write(Level::error, event, fields, sentence);
}

}  // namespace hapax::observe::log
