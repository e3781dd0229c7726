// The console: a web page for operators, over the tables and functions that the commands use.
//
// A request passes Access first, then reaches a file of the page, a view or an order.
#pragma once

#include <string>

#include "config/config.hpp"
#include "console/access.hpp"
#include "console/ground.hpp"
#include "console/kafka_watch.hpp"
#include "console/sessions.hpp"
#include "observe/page_server.hpp"

namespace hapax::console {

struct ConsoleSetup {
  config::Config config;
  std::string config_path;  // as the operator typed it
  std::string url;          // another role than the configuration's; empty: that one
  std::string who;
  std::string host = "127.0.0.1";
  int port = 0;
  KafkaWatch::Ask ask_kafka;
};

class Console {
 public:
  // Listens at once. Throws: std::runtime_error if it cannot listen there.
  explicit Console(ConsoleSetup setup);

  int port() const { return server_.port(); }
  // "127.0.0.1:9470"
  std::string address() const;

  // With the token: who has it may do all that the role may.
  std::string url() const;

 private:
  observe::PageAnswer answer(const observe::PageRequest& request);

  const std::string host_;
  const std::string token_;
  const Access access_;
  Sessions sessions_;
  KafkaWatch kafka_;
  Ground ground_;
  observe::PageServer server_;  // last: its threads use the rest
};

}  // namespace hapax::console
