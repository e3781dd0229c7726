// What the views and orders of the console stand on.
#pragma once

#include <atomic>
#include <string>

#include "console/kafka_watch.hpp"
#include "console/sessions.hpp"

namespace hapax::console {

struct Ground {
  std::string config_path;  // for the command lines on the page
  std::string who;          // the name that the page proposes
  Sessions& sessions;
  KafkaWatch& kafka;
  std::atomic<bool> explains = false;  // a thread asks Kafka about a message
};

}  // namespace hapax::console
