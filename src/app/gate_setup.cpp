#include "app/gate_setup.hpp"

#include "store/conninfo.hpp"

namespace hapax::app {

config::GateConfig load_gate(const ConfigOption& option, std::vector<std::string>& warnings) {
  config::LoadedGate loaded = config::load_gate_file(option.path, config::process_environment());
  warnings = std::move(loaded.warnings);
  if (!loaded.config)
    throw Stop(kConfigWrong, "the configuration " + option.path + " is wrong:\n" +
                                 config::format(loaded.problems));
  try {
    store::conninfo_of(loaded.config->base.postgres.url, {});
  } catch (const store::DatabaseError& error) {
    throw Stop(kConfigWrong, "the configuration " + option.path + " is wrong:\n" + error.what());
  }
  return *std::move(loaded.config);
}

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
