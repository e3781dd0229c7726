// Which route a path belongs to.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/gate.hpp"

namespace hapax::gate {

// Thread safety: immutable.
class Routes {
 public:
  explicit Routes(const std::vector<config::GateRoute>& routes);

  struct Match {
    std::size_t route;
    std::vector<std::pair<std::string, std::string>> parameters;  // decoded
  };

  // Segments are decoded first. A literal one is compared byte for byte, and comes before a
  // parameter. Nothing: no route takes the path, or a segment is not well encoded, or a parameter
  // is empty, `.`, `..`, not UTF-8, or has a NUL.
  std::optional<Match> find(std::string_view path) const;

  const config::GateRoute& operator[](std::size_t route) const { return routes_[route]; }
  std::size_t size() const { return routes_.size(); }

 private:
  const std::vector<config::GateRoute> routes_;
  std::vector<std::pair<std::vector<std::string>, std::size_t>> templates_;  // literals first
};

}  // namespace hapax::gate
