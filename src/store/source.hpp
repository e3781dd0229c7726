// The coordinates by which PostgreSQL remembers a message. They hold the group, because another
// group's dead letter is not a redelivery. They hold the generation, because a re-created topic
// starts at 0 again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hapax/rows.hpp"

namespace hapax::store {

struct Source {
  std::string group;
  std::string topic;
  std::int32_t generation = 1;
  std::int32_t partition = 0;
  std::int64_t offset = 0;

  // As the first five parameters of most statements.
  std::vector<Parameter> parameters() const {
    return {group, topic, generation, partition, offset};
  }
};

}  // namespace hapax::store
