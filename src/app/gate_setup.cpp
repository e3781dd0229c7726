#include "app/gate_setup.hpp"

namespace hapax::app {

std::optional<gate::Operations> operations_of(const config::GateConfig& config) {
  try {
    return gate::Operations::of(config);
  } catch (const std::runtime_error& error) {
    throw Stop(kConfigWrong, error.what());
  }
}

std::unique_ptr<gate::Tls> tls_of(const config::GateConfig& config) {
  if (!config.gate.tls.is_on()) return nullptr;
  try {
    return std::make_unique<gate::Tls>(config.gate.tls);
  } catch (const std::runtime_error& error) {
    throw Stop(kConfigWrong, error.what());
  }
}

}  // namespace hapax::app
