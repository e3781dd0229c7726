// Keeps the steps of one call without PostgreSQL.
#pragma once

#include "outside/steps.hpp"

namespace hapax::outside {

struct KeptInMemory final : StepKeeper {
  std::optional<store::KeptSteps> read(const StepOwner&) override {
    ++reads;
    if (!is_ours) return std::nullopt;
    return kept;
  }
  bool keep(const StepOwner&, const store::KeptSteps& steps, const store::KeptSteps&) override {
    if (is_ours) kept = steps;
    return is_ours;
  }

  store::KeptSteps kept;
  bool is_ours = true;
  int reads = 0;
};

}  // namespace hapax::outside
