// Takes rights of all users away, and gives them back, on a server with an authorizer. In Kafka's
// own words, because librdkafka 2.0 knows no ACLs of transactional ids.
//
// Throws: std::runtime_error. Blocks: at most 30 s, until the broker has taken it over.
#pragma once

#include <cstdint>
#include <string>

namespace hapax::support {

// Kafka's numbers.
enum class Resource : std::uint8_t { topic = 2, group = 3, transactional_id = 5 };
enum class Operation : std::uint8_t { read = 3, write = 4, describe = 8 };

struct Right {
  Resource of;
  std::string name;
  Operation operation;
};

// All other rights of the resource stay.
void take_away(const std::string& bootstrap, const Right& right);
void give_back(const std::string& bootstrap, const Right& right);

}  // namespace hapax::support
