#include "kafka/conf.hpp"

#include <stdexcept>

#include "kafka/client_error.hpp"

namespace hapax::kafka {
namespace {

rd_kafka_conf_res_t set(const ConfHandle& conf, const std::string& name, const std::string& value) {
  char quotes_the_value[512];
  return rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), quotes_the_value,
                           sizeof quotes_the_value);
}

}  // namespace

ConfHandle make_conf(const Properties& properties, const Properties& if_known) {
  ConfHandle conf(rd_kafka_conf_new());
  std::string wrong;
  const auto refuse = [&](const std::string& name, const std::string& why) {
    wrong += (wrong.empty() ? "kafka." : "\nkafka.") + name + ": " + why;
  };
  const std::string librdkafka = std::string("librdkafka ") + rd_kafka_version_str();
  const auto judge = [&](const std::string& name, rd_kafka_conf_res_t result) {
    if (result == RD_KAFKA_CONF_UNKNOWN) refuse(name, librdkafka + " does not know this property");
    if (result == RD_KAFKA_CONF_INVALID)
      refuse(name,
             librdkafka + " does not accept this value; its CONFIGURATION.md lists what it takes");
  };
  for (const auto& [name, value] : if_known)
    if (const auto result = set(conf, name, value); result != RD_KAFKA_CONF_UNKNOWN)
      judge(name, result);
  for (const auto& [name, value] : properties) {
    if (const auto why = unreadable_file(name, value))
      refuse(name, *why);
    else
      judge(name, set(conf, name, value));
  }
  if (!wrong.empty()) throw std::runtime_error(wrong);
  return conf;
}

ClientHandle make_client(rd_kafka_type_t type, ConfHandle conf) {
  char error[512];
  ClientHandle client(rd_kafka_new(type, conf.get(), error, sizeof error));
  if (!client) throw std::runtime_error(explain_refused_settings(error));
  conf.release();  // the client's now
  return client;
}

}  // namespace hapax::kafka
