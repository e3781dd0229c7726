#include "worker/start_questions.hpp"

#include <set>
#include <stdexcept>

#include "key/identity.hpp"
#include "observe/log.hpp"

namespace hapax::worker {

void StartQuestions::log_delayed(const std::exception& error) {
  if (!delays_.is_due(error.what(), std::chrono::steady_clock::now())) return;
  observe::log::warning("start_delayed", {{"error", error.what()}},
                        "Kafka did not tell or take the offsets of partitions; trying again");
}

// If a broker does not answer, facts_of() asks it again for each of its partitions.
StartQuestions::Answers StartQuestions::ask(const HeldPartitions::List& partitions,
                                            KeeperSession& session) {
  Answers answers;
  std::vector<TopicPartition> ids;
  for (const auto& partition : partitions) ids.push_back(partition->id());
  // Asked before the ends of the logs, so that no other group can have read further than those.
  std::vector<TopicPartition> of_coordinates;
  std::vector<TopicPartition> outside;
  for (const auto& partition : partitions) {
    if (key::may_be_coordinates(partition->route().key)) of_coordinates.push_back(partition->id());
    if (partition->route().outside) outside.push_back(partition->id());
  }
  answers.logs = store::read_logs(session.get(), setup_.group, of_coordinates);
  answers.committed = consumer_.committed(ids, kKafkaTimeout);
  try {
    answers.ranges = consumer_.ranges(ids, kKafkaTimeout);
  } catch (const std::exception& error) {
    log_delayed(error);
  }
  std::set<std::string> topics;
  for (const TopicPartition& id : ids) topics.insert(id.first);
  for (const std::string& topic : topics) {
    try {
      answers.topic_ids[topic] = consumer_.topic_id(topic, kKafkaTimeout);
    } catch (const std::exception& error) {
      log_delayed(error);
    }
  }
  answers.rows = store::read_checkpoints(session.get(), setup_.group, ids);
  answers.doubts = store::read_doubts(session.get(), setup_.group, outside);
  return answers;
}

StartFacts StartQuestions::facts_of(const Partition& partition, const Answers& answers) const {
  const TopicPartition& id = partition.id();
  const auto found = answers.committed.find(id);
  if (found == answers.committed.end())
    throw std::runtime_error("Kafka does not tell the group's offset for " + id.first + "/" +
                             std::to_string(id.second));
  const auto topic_id = answers.topic_ids.find(id.first);
  if (topic_id == answers.topic_ids.end())
    throw std::runtime_error("Kafka does not tell the id of topic " + id.first);
  const kafka::Committed& committed = found->second;
  const auto told = answers.ranges.find(id);
  const kafka::OffsetRange range =
      told != answers.ranges.end() ? told->second : consumer_.range(id, kKafkaTimeout);
  StartFacts facts;
  facts.committed = committed.offset;
  if (committed.offset) facts.provenance = kafka::Provenance::parse(committed.metadata);
  facts.low = range.low;
  facts.high = range.high;
  facts.read_below = partition.handover.read_below;
  facts.topic_id = topic_id->second;
  if (const auto row = answers.rows.find(id); row != answers.rows.end()) facts.row = row->second;
  facts.key_spec = key::spec_digest(partition.route().key);
  facts.initial_latest = setup_.initial_latest;
  facts.earliest_when_out_of_range = setup_.earliest_when_out_of_range;
  facts.key_may_be_coordinates = key::may_be_coordinates(partition.route().key);
  facts.scope = partition.route().key.scope;
  if (const auto logs = answers.logs.find(id); logs != answers.logs.end())
    facts.known_logs = logs->second;
  if (const auto& outside = partition.route().outside) facts.repeat = outside->repeat;
  if (const auto& seen = partition.handover.seen_wal) facts.seen_wal = seen->position;
  if (const auto doubt = answers.doubts.find(id); doubt != answers.doubts.end())
    facts.doubt = doubt->second;
  return facts;
}

}  // namespace hapax::worker
