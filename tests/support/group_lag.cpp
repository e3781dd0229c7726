#include "support/group_lag.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <thread>

#include "support/client.hpp"

namespace hapax::support {
namespace {

constexpr int kLagPatienceMs = 10'000;
constexpr std::chrono::milliseconds kAskLagAgain{100};

// A consumer that never joins its group.
class Onlooker {
 public:
  Onlooker(const std::string& bootstrap, const std::string& group)
      : client_(make_client(RD_KAFKA_CONSUMER, configuration(bootstrap, {{"group.id", group}}))) {}

  std::int64_t lag(const std::string& topic, int partitions) const {
    const kafka::ListHandle list(rd_kafka_topic_partition_list_new(partitions));
    rd_kafka_topic_partition_list_add_range(list.get(), topic.c_str(), 0, partitions - 1);
    check(rd_kafka_committed(client_.get(), list.get(), kLagPatienceMs), "committed");
    std::int64_t lag = 0;
    for (int partition = 0; partition < partitions; ++partition) {
      check(list->elems[partition].err, "committed");
      std::int64_t low = 0, high = 0;
      check(rd_kafka_query_watermark_offsets(client_.get(), topic.c_str(), partition, &low, &high,
                                             kLagPatienceMs),
            "offsets of " + topic);
      const std::int64_t committed = list->elems[partition].offset;
      lag += committed < 0 ? std::max<std::int64_t>(high, 1) : high - committed;
    }
    return lag;
  }

 private:
  std::unique_ptr<rd_kafka_t, kafka::Destroyer<rd_kafka_destroy>> client_;
};

}  // namespace

std::int64_t group_lag(const std::string& bootstrap, const std::string& group,
                       const std::string& topic, int partitions) {
  return Onlooker(bootstrap, group).lag(topic, partitions);
}

void await_no_lag(const std::string& bootstrap, const std::string& group, const std::string& topic,
                  int partitions, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const Onlooker onlooker(bootstrap, group);
  for (;;) {
    std::string state;
    try {
      const std::int64_t lag = onlooker.lag(topic, partitions);
      if (lag == 0) return;
      state = std::to_string(lag) + " behind";
    } catch (const std::runtime_error& error) {
      state = std::string("not known: ") + error.what();  // a broker that starts or moves the group
    }
    if (std::chrono::steady_clock::now() >= deadline)
      throw std::runtime_error("group " + group + " on " + topic + " is still " + state);
    std::this_thread::sleep_for(kAskLagAgain);
  }
}

}  // namespace hapax::support
