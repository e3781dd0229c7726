#include "kafka/log_ends.hpp"

#include <set>
#include <stdexcept>

namespace hapax::kafka {

std::map<TopicPartition, std::int64_t> LogEnds::ask(const std::vector<TopicPartition>& partitions,
                                                    std::chrono::milliseconds timeout) {
  Properties now = properties_();
  const std::pair credentials(now["sasl.username"], now["sasl.password"]);
  if (!client_)
    client_ = std::make_unique<AskingClient>(properties_(), "read_uncommitted");
  else if (credentials != credentials_)
    client_->consumer.set_credentials(credentials.first, credentials.second);
  credentials_ = credentials;
  (void)client_->consumer.poll(std::chrono::milliseconds(0));  // or its errors would pile up
  std::map<TopicPartition, std::int64_t> found;
  try {
    found = client_->consumer.ends(partitions, timeout);
  } catch (const std::runtime_error&) {
    // No broker answers, or one that was asked leads no more.
  }
  if (found.size() < partitions.size()) learn_leaders(partitions, timeout);
  return found;
}

// This client fetches nothing, so it does not notice by itself that another broker leads.
void LogEnds::learn_leaders(const std::vector<TopicPartition>& partitions,
                            std::chrono::milliseconds timeout) const {
  std::set<std::string> topics;
  for (const auto& [topic, partition] : partitions) topics.insert(topic);
  for (const std::string& topic : topics) (void)client_->consumer.partition_count(topic, timeout);
}

}  // namespace hapax::kafka
