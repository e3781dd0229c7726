#include "app/kafka_reader.hpp"

#include <stdexcept>

namespace hapax::app {

std::string KafkaReader::reach(std::chrono::milliseconds timeout) {
  try {
    return consumer_.cluster_id(timeout);
  } catch (const std::runtime_error&) {
    consumer_.poll(std::chrono::milliseconds(0));  // serves on_client_error
    if (first_error_.empty()) throw;
    throw std::runtime_error(first_error_);
  }
}

}  // namespace hapax::app
