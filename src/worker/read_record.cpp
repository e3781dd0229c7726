#include "worker/read_record.hpp"

#include <algorithm>
#include <charconv>

namespace hapax::worker {
namespace {

// Offsets below the start.
constexpr std::int64_t kMostReadAgain = 1000;

// Takes a number off the front.
template <class Number>
bool take(std::string_view& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_slash(std::string_view& text) {
  if (!text.starts_with('/')) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string ReadRecord::text() const {
  return std::to_string(generation) + "/" + std::to_string(offset) + "/" +
         (timestamp_ms ? std::to_string(*timestamp_ms) : "");
}

std::optional<ReadRecord> ReadRecord::parse(std::string_view text) {
  ReadRecord record;
  if (!take(text, record.generation) || !take_slash(text) || !take(text, record.offset) ||
      !take_slash(text))
    return std::nullopt;
  if (!text.empty() && !take(text, record.timestamp_ms.emplace())) return std::nullopt;
  return text.empty() ? std::optional(record) : std::nullopt;
}

std::vector<ReadRecord> comparable(std::vector<ReadRecord> records, std::int32_t generation,
                                   std::int64_t low, std::int64_t offset) {
  std::erase_if(records, [&](const ReadRecord& record) {
    return record.generation != generation || record.offset < low ||
           record.offset + kMostReadAgain < offset;
  });
  std::ranges::sort(records, {}, &ReadRecord::offset);
  return records;
}

}  // namespace hapax::worker
