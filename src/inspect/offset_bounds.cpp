#include "inspect/offset_bounds.hpp"

#include "cli/command.hpp"
#include "cli/kafka_reader.hpp"
#include "config/units.hpp"

namespace hapax::app {

Bound bound_of(const char* option, const std::string& text, std::int64_t now_ms) {
  if (const auto parsed = parse_bound(text)) return *parsed;
  const auto ago = config::parse_duration(text);
  if (!ago)
    throw Stop(kUsage, std::string(option) + " \"" + text +
                           "\" is none of: an offset, a time in UTC such as 2026-11-01T09:30, how "
                           "long ago (15m, 2h, 7d)");
  return {true, now_ms - ago->count()};
}

void expect_a_range(const std::string& from, const std::string& to, std::int64_t now_ms) {
  if (from.empty()) return;
  const Bound first = bound_of("--from", from, now_ms);
  if (first.is_time && first.value > now_ms)
    throw Stop(kUsage, "--from " + from + " is still to come");
  if (to.empty()) return;
  const Bound end = bound_of("--to", to, now_ms);
  if (first.is_time == end.is_time && end.value <= first.value)
    throw Stop(kUsage, "nothing lies between --from " + from + " and --to " + to +
                           ", which is not behind it");
}

std::optional<OffsetBounds> offset_bounds(const kafka::Consumer& consumer, const char* option,
                                          const std::string& text, std::int64_t now_ms,
                                          const std::vector<kafka::TopicPartition>& partitions) {
  if (text.empty()) return std::nullopt;
  const Bound bound = bound_of(option, text, now_ms);
  if (bound.is_time) return consumer.offsets_at(partitions, bound.value, kKafkaTimeout);
  OffsetBounds same;
  for (const kafka::TopicPartition& partition : partitions) same[partition] = bound.value;
  return same;
}

}  // namespace hapax::app
