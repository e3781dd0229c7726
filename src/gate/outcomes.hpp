// A thread of the gate that looks what has become of accepted requests, so that their keys expire
// in the end. An accepted request's key must not expire while a worker may still run the request.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "gate/operations.hpp"
#include "store/session.hpp"

namespace hapax::gate {

struct OutcomesSetup {
  std::function<store::Session()> connect;
  std::string gate;    // its scope and name; one process of the gate at a time looks
  std::string holder;  // unlike that of any other process
  const Operations& operations;
};

class Outcomes {
 public:
  explicit Outcomes(OutcomesSetup setup);

 private:
  void run(const std::stop_token& stop);
  void look(const std::stop_token& stop);

  const OutcomesSetup setup_;
  store::WaitingOperation after_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace hapax::gate
