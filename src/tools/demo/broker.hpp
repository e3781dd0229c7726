// The Kafka of `hapax demo`: librdkafka's built-in broker, the messages in it, and a view of the
// group's offsets.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/demo/messages.hpp"

namespace hapax::app {

class DemoBroker {
 public:
  // Throws: std::runtime_error, as do all functions here.
  DemoBroker();
  ~DemoBroker();

  std::string bootstrap() const;

  // Returns when the broker has all of them. Blocks: at most a minute.
  void send(const std::vector<DemoMessage>& messages);

  // One more than the last offset, by partition.
  std::map<std::int32_t, std::int64_t> ends() const;

  // What the group has committed, by partition. Leaves out partitions without a committed offset.
  std::map<std::int32_t, std::int64_t> committed() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace hapax::app
