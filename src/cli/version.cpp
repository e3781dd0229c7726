#include "cli/version.hpp"

#include "kafka/consumer.hpp"
#include "store/session.hpp"

namespace hapax::app {

observe::Versions versions() {
  return {HAPAX_VERSION, kafka::Consumer::version(), store::Session::pqxx_version(),
          store::Session::libpq_version()};
}

std::string version_text() {
  const observe::Versions v = versions();
  return "hapax " + v.hapax + "\nlibrdkafka " + v.librdkafka + "\nlibpqxx " + v.libpqxx +
         "\nlibpq " + v.libpq;
}

}  // namespace hapax::app
