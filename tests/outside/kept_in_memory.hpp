// Keeps the steps of one call without PostgreSQL.
#pragma once

#include <nlohmann/json.hpp>

#include "outside/steps.hpp"

namespace hapax::outside {

struct KeptInMemory final : StepKeeper {
  std::optional<store::KeptSteps> read(const StepOwner&) override {
    ++reads;
    if (!is_ours) return std::nullopt;
    store::KeptSteps steps;
    for (const auto& [name, answer] : kept.items()) steps.emplace(name, answer.dump());
    return steps;
  }
  bool keep(const StepOwner&, const std::string& steps) override {
    if (is_ours) kept = nlohmann::json::parse(steps);
    return is_ours;
  }

  nlohmann::json kept = nlohmann::json::object();
  bool is_ours = true;
  int reads = 0;
};

}  // namespace hapax::outside
