#include "support/hapax_command.hpp"

#include <fstream>
#include <sstream>

#include "sandbox/child_process.hpp"
#include "sandbox/temporary_folder.hpp"

namespace hapax::support {

std::string hapax_command(const Site& site, std::vector<std::string> arguments, bool as_owner) {
  const sandbox::TemporaryFolder folder("command");
  nlohmann::json config = site.options("operator").config;
  if (as_owner) config["postgres"]["url"] = site.database().owner().url;
  std::ofstream(folder.path() / "worker.json") << config.dump(2);
  arguments.insert(arguments.begin(), HAPAX_BINARY_DIR "/bin/hapax");
  arguments.insert(arguments.end(), {"-c", folder.path() / "worker.json"});
  const auto printed = folder.path() / "printed";
  sandbox::run_to_end({arguments, {{"USER", "ann"}}, {}, printed}, std::chrono::seconds(30));
  std::ostringstream text;
  text << std::ifstream(printed).rdbuf();
  return text.str();
}

}  // namespace hapax::support
