#include "worker/start_log.hpp"

#include "observe/log.hpp"

namespace hapax::worker {

void log_beginning(const TopicPartition& id, const StartFacts& facts, const StartAt& at) {
  const bool key_changed = facts.row && facts.row->next_offset && !facts.row->key_spec.empty() &&
                           facts.row->key_spec != facts.key_spec;
  if (key_changed)
    observe::log::warning(
        "key_changed", {{"topic", id.first}, {"partition", id.second}},
        "the key, tenant or scope of this route is another one since this partition was drained. "
        "If a producer sends an older operation again, it is no duplicate any more, and runs");
  if (at.gap > 0)
    observe::log::error("messages_lost",
                        {{"topic", id.first}, {"partition", id.second}, {"messages", at.gap}},
                        "Kafka deleted messages before they were processed; going on at the "
                        "earliest, because kafka.out_of_range is earliest");
  if (at.doubt_below > 0)
    observe::log::warning(
        "calls_in_doubt",
        {{"topic", id.first}, {"partition", id.second}, {"below", at.doubt_below}},
        "PostgreSQL has lost its tail (a failover or a restore), and may have forgotten calls for "
        "messages below this offset. For what it does not know, outside.repeat decides");
}

bool is_settling(Partition& partition, const store::Taken& taken) {
  if (!taken.settling) return false;
  constexpr const char* kWhy = "a transaction of its last owner is still open in PostgreSQL";
  if (partition.delayed() == kWhy) return true;
  partition.delayed(kWhy);
  const auto& [topic, number] = partition.id();
  observe::log::info("start_waits", {{"topic", topic}, {"partition", number}},
                     "a transaction of the partition's last owner is still open in PostgreSQL; the "
                     "start waits, at most postgres.idle_in_transaction_timeout if it is idle");
  return true;
}

}  // namespace hapax::worker
