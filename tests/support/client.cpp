#include "support/client.hpp"

#include <stdexcept>

namespace hapax::support {

kafka::ConfHandle configuration(const std::string& bootstrap,
                                const std::map<std::string, std::string>& properties) {
  kafka::ConfHandle conf(rd_kafka_conf_new());
  const auto set = [&](const std::string& name, const std::string& value) {
    char error[512];
    if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), error, sizeof error) !=
        RD_KAFKA_CONF_OK)
      throw std::runtime_error(error);
  };
  set("bootstrap.servers", bootstrap);
  // A test restarts brokers and waits for the reconnect.
  set("reconnect.backoff.ms", "20");
  set("reconnect.backoff.max.ms", "200");
  set("log_level", "2");  // and breaks connections on purpose; what counts comes as an error
  for (const auto& [name, value] : properties) set(name, value);
  return conf;
}

rd_kafka_t* make_client(rd_kafka_type_t type, kafka::ConfHandle conf) {
  char error[512];
  rd_kafka_t* client = rd_kafka_new(type, conf.get(), error, sizeof error);
  if (client == nullptr) throw std::runtime_error(error);
  conf.release();
  return client;
}

void check(rd_kafka_resp_err_t error, const std::string& what) {
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
    throw std::runtime_error(what + ": " + rd_kafka_err2str(error));
}

void check(rd_kafka_error_t* error, const std::string& what) {
  if (error == nullptr) return;
  const std::string text = what + ": " + rd_kafka_error_string(error);
  rd_kafka_error_destroy(error);
  throw std::runtime_error(text);
}

}  // namespace hapax::support
