// What the parts of the keeper are made of.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "store/session.hpp"

namespace hapax::worker {

struct KeeperSetup {
  std::string group;
  std::string worker_name;
  std::function<store::Session()> connect;
  std::chrono::milliseconds checkpoint_interval{1000};
  bool initial_latest = false;
  bool earliest_when_out_of_range = false;
  std::vector<std::string> topics_of_static_member;  // empty if it is none
};

}  // namespace hapax::worker
