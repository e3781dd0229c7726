#include "support/command.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

#include "sandbox/child_process.hpp"
#include "sandbox/temporary_folder.hpp"

namespace hapax::support {

Said hapax(std::vector<std::string> arguments, const std::filesystem::path& config,
           std::chrono::milliseconds timeout) {
  const sandbox::TemporaryFolder folder("command");
  sandbox::Program program;
  program.argv = {HAPAX_BINARY_DIR "/bin/hapax"};
  program.argv.insert(program.argv.end(), arguments.begin(), arguments.end());
  program.argv.insert(program.argv.end(), {"-c", config});
  program.environment["USER"] = "operator";
  program.output = folder.path() / "output";
  sandbox::ChildProcess process(program);
  const auto exit = process.wait(timeout);
  std::ifstream output(program.output);
  std::string text{std::istreambuf_iterator<char>(output), {}};
  if (!exit || exit->signal != 0)
    throw std::runtime_error("hapax " + arguments.front() +
                             (exit ? " ended by " + exit->text() : std::string(" does not end")) +
                             ":\n" + text);
  return {exit->code, std::move(text)};
}

std::string order(std::vector<std::string> arguments, const std::filesystem::path& config,
                  const std::string& url) {
  arguments.insert(arguments.end(), {"--why", "drill", "--yes", "--url", url});
  const Said said = hapax(std::move(arguments), config);
  EXPECT_EQ(said.code, 0) << said.text;
  return said.text;
}

}  // namespace hapax::support
