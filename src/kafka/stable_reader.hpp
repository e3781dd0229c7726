// What consumers with read_committed see of a topic, for the producer that waits until they see its
// transaction. It asks, and never joins a group.
//
// Thread safety: none. All calls throw TransactionError.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "kafka/asking_client.hpp"
#include "kafka/consumer.hpp"

namespace hapax::kafka {

// Called once if something takes long. `why`: what Kafka tells about it, or "".
using Delayed = std::function<void(const std::string& why)>;

using Ends = std::map<std::int32_t, std::int64_t>;  // partition → one more than an offset

class StableReader {
 public:
  // `connecting`: properties about the connection only. A call that waits ends soon after a stop.
  StableReader(Properties connecting, std::string topic, std::string group, std::stop_token stop);
  ~StableReader();
  StableReader(const StableReader&) = delete;
  StableReader& operator=(const StableReader&) = delete;

  // What the group has committed for partition 0, with stable offsets only. Blocks: seconds.
  Committed committed() const;

  // Whether the leaders of these partitions answer. Blocks: seconds.
  bool do_answer(const Ends& partitions) const;

  // Both wait for a partition without a leader, and call `delayed` once if it takes long. They end
  // with `lost` if the topic is gone, was made again, or has a shorter log.
  //
  // The ends of all that is written to partitions [0, count), committed or not.
  Ends written_ends(std::int32_t count, const Delayed& delayed);
  // Until consumers have passed all before `ends`.
  void await_passed(const Ends& ends, const Delayed& delayed);

 private:
  using Client = AskingClient;
  Client& all();
  std::optional<std::int32_t> partition_count(const Client& client) const;
  Ends ends_of(const Client& client, const Ends& wanted) const;
  Ends await_ends(const Client& client, const Ends& wanted, const Delayed& delayed);
  std::string what_is_gone(const Ends& wanted);

  const Properties connecting_;
  const std::string topic_, group_;
  const std::stop_token stop_;
  const std::unique_ptr<Client> stable_;  // with read_committed
  std::unique_ptr<Client> all_;           // with read_uncommitted, once it is needed
  mutable std::string trouble_;           // why no broker told the topic's partitions last
};

}  // namespace hapax::kafka
