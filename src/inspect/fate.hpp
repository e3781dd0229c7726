// What became of an offset: Kafka's record, its key and PostgreSQL's rows held against each other.
// This is the claim table (flow/judge.cpp) read backwards. Each settled message leaves
// one of these facts behind. If there is none, the verdict is `unaccounted`; it is never guessed.
//
// Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "key/identity.hpp"
#include "store/operator/account.hpp"
#include "store/worker/checkpoints.hpp"

namespace hapax::payload {
class Reader;
}

namespace hapax::app {

enum class Verdict {
  completed,      // this message took effect
  duplicate,      // another message of its operation took effect
  dead_letter,    // given up on, and kept
  waiting,        // failed, and is tried again
  in_flight,      // at or above the checkpoint, and nothing is known of it yet
  not_a_message,  // Kafka has no record at this offset
  skipped,        // left out on purpose: by an operator, by the group's start, by the route
  expired,        // below the checkpoint, and old enough that retention may have removed its key
  forgotten,      // below the checkpoint, and its key was failed or forgotten and taken over since
  deleted,        // Kafka has deleted it, and PostgreSQL knows nothing by its coordinates
  not_written,    // at or above the end of the log
  unaccounted,    // below the checkpoint, and nothing explains it
};
inline constexpr std::size_t kVerdicts = static_cast<std::size_t>(Verdict::unaccounted) + 1;

// The fixed word, for programs.
const char* name_of(Verdict verdict);

// The offsets that were left out, of all jumps of a partition's position. What was jumped over and
// rewound to later is not left out, nor is what was read before.
class LeftOut {
 public:
  LeftOut() = default;
  // `jumps`: oldest first.
  explicit LeftOut(const std::vector<store::JumpRow>& jumps);

  struct Gap {
    std::int64_t from = 0;
    std::int64_t to = 0;
    store::JumpRow by;
  };
  const std::vector<Gap>& gaps() const { return gaps_; }  // by offset, apart
  // Null: it was not left out. Valid as long as this.
  const store::JumpRow* at(std::int64_t offset) const;

 private:
  void read(std::int64_t from, std::int64_t to);
  std::vector<Gap> gaps_;
};

// The state of the group on a partition. Read before what is known of its messages, or a message
// that settled meanwhile would seem to be below the checkpoint and unknown.
struct Standing {
  std::string group;
  store::TopicPartition partition;
  std::int32_t generation = 1;
  std::optional<std::int64_t> checkpoint;  // nothing: never started
  std::optional<store::Halt> halt;         // the open one that stops it
  LeftOut left_out;
  bool by_position = false;  // the route keeps offsets, and no keys
  // By position: an operator had it go on in a log that may have lost its end. What Kafka wrote
  // again at offsets that were settled before seems completed.
  std::optional<store::Decided> same_topic = {};
  bool other_keys = false;  // the group ran under another key spec than the configuration's
  std::chrono::milliseconds retention{0};
  std::int64_t now_ms = 0;  // since 1970
  // Decodes the route's payloads; null: it has no payload.format.
  std::shared_ptr<const payload::Reader> reader = {};
};

enum class InKafka { record, no_record, deleted, not_written };

// What is known of one offset.
struct Facts {
  std::int64_t offset = 0;
  InKafka in_kafka = InKafka::no_record;
  std::optional<std::int64_t> timestamp_ms;
  std::optional<key::Derived> derived;  // of the record
  std::optional<store::KeyRow> key;
  bool same_payload = false;  // as the key's: key::same_payload
  std::optional<store::DeadRow> dead;
  std::optional<store::AttemptRow> attempt;
  bool settled = false;  // by position: it took effect, and the checkpoint has not passed it
};

Verdict classify(const Standing& standing, const Facts& facts);

// The same in a sentence for people, without a full stop. May quote the message.
std::string tell(const Standing& standing, const Facts& facts, Verdict verdict);

// What of that decision, without a full stop. Precondition: there is one.
std::string tell_same_topic(const Standing& standing);

// "topic/partition/offset", with group and generation if they are not this standing's.
std::string name_of(const Standing& standing, const store::KeyHolder& holder);

}  // namespace hapax::app
