// Which route a test is about, and how a worker would connect for it.
#pragma once

#include <nlohmann/json.hpp>

#include "flow/route.hpp"
#include "hapax/testing.hpp"
#include "store/session.hpp"
#include "store/testing/test_database.hpp"

namespace hapax::testing {

struct TestedRoute {
  flow::Route route;
  nlohmann::json options;         // for on_start
  store::ConnectOptions connect;  // without a url
  store::TableRights rights;      // routes[].tables
  std::string rights_source;      // of what, for people
};

// For people, behind a path that cannot be read: the folder that it is relative to. "" if it is
// not.
std::string folder_of(const std::string& path);

// With commas.
std::string joined(const std::vector<std::string>& words);

// Throws: std::runtime_error with every mistake of the configuration.
TestedRoute read_route(const HandlerFactory& handler, const Options& options);

}  // namespace hapax::testing
