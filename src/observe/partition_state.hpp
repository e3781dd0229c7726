// What an assigned partition is doing, as metrics and readiness tell it.
#pragma once

#include <cstdint>
#include <string_view>

namespace hapax::observe {

enum class PartitionState : std::uint8_t {
  starting,     // assigned; its start is not agreed with PostgreSQL yet
  running,      // receives and settles
  idle,         // everything up to the partition's end is settled
  paused_full,  // its queue is full; Kafka is not read until there is room
  refused,      // Kafka does not let us read it
  halted,       // stopped on purpose, with a reason, until someone resumes it
};

constexpr std::string_view name(PartitionState state) {
  switch (state) {
    case PartitionState::starting: return "starting";
    case PartitionState::running: return "running";
    case PartitionState::idle: return "idle";
    case PartitionState::paused_full: return "paused_full";
    case PartitionState::refused: return "refused";
    case PartitionState::halted: return "halted";
  }
  return "unknown";
}

}  // namespace hapax::observe
