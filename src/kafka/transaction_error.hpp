// Why a step with a transaction of Kafka's did not succeed.
#pragma once

#include <stdexcept>
#include <string>

namespace hapax::kafka {

struct TransactionError : std::runtime_error {
  enum class Kind {
    failed,    // it may succeed if it is tried again
    refused,   // a right is missing, or this Kafka has no transactions
    no_topic,  // no topic of this name is known. A broker with old metadata answers so, too
    too_long,  // Kafka allows no transaction as long as Setup::timeout
    slow,      // the transaction took too long, though the leaders of its partitions answer
    lost,      // the topic does not have any more what it had
  };
  TransactionError(const std::string& what, Kind why) : std::runtime_error(what), kind(why) {}
  const Kind kind;
};

}  // namespace hapax::kafka
