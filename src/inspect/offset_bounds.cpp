#include "inspect/offset_bounds.hpp"

#include "cli/bound.hpp"
#include "cli/command.hpp"
#include "cli/kafka_reader.hpp"
#include "config/units.hpp"

namespace hapax::app {

std::optional<OffsetBounds> offset_bounds(const kafka::Consumer& consumer, const char* option,
                                          const std::string& text, std::int64_t now_ms,
                                          const std::vector<kafka::TopicPartition>& partitions) {
  if (text.empty()) return std::nullopt;
  const auto parsed = parse_bound(text);
  const auto ago = config::parse_duration(text);
  if (!parsed && !ago)
    throw Stop(kUsage, std::string(option) + " \"" + text +
                           "\" is none of: an offset, a time in UTC such as 2026-11-01T09:30, how "
                           "long ago (15m, 2h, 7d)");
  if (parsed && !parsed->is_time) {
    OffsetBounds same;
    for (const kafka::TopicPartition& partition : partitions) same[partition] = parsed->value;
    return same;
  }
  const std::int64_t time = parsed ? parsed->value : now_ms - ago->count();
  return consumer.offsets_at(partitions, time, kKafkaTimeout);
}

}  // namespace hapax::app
