#include "support/runbook.hpp"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>

#include "sandbox/child_process.hpp"
#include "sandbox/temporary_folder.hpp"

namespace hapax::support {
namespace {

constexpr std::chrono::minutes kTimeout{3};

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::vector<std::string> commands_under(const std::string& heading) {
  const std::string page = text_of(std::filesystem::path(HAPAX_SOURCE_DIR) / "docs/operating.md");
  const auto start = page.find('\n' + heading + '\n');
  const std::string level = heading.substr(0, heading.find(' ') + 1);
  std::vector<std::string> blocks;
  if (start != std::string::npos) {
    const auto end = page.find('\n' + level, start + heading.size());
    const std::string section = page.substr(start, end - start);
    static const std::regex block("```sh\n([^`]+)```");
    for (std::sregex_iterator it(section.begin(), section.end(), block), last; it != last; ++it)
      blocks.push_back((*it)[1]);
  }
  if (blocks.empty())
    throw std::runtime_error("docs/operating.md has nothing to type under " + heading);
  return blocks;
}

Said type(const std::string& commands, const std::filesystem::path& folder,
          std::map<std::string, std::string> variables) {
  const sandbox::TemporaryFolder output("typed");
  sandbox::Program shell;
  static const std::regex installed("/usr/share/hapax/");
  shell.argv = {"/bin/sh", "-euxc",
                std::regex_replace(commands, installed, HAPAX_SOURCE_DIR "/sql/")};
  const char* const path = std::getenv("PATH");
  shell.environment = std::move(variables);
  shell.environment["PATH"] =
      std::string(HAPAX_BINARY_DIR "/bin:") + (path != nullptr ? path : "/usr/bin:/bin");
  shell.environment["USER"] = "operator";
  shell.folder = folder;
  shell.output = output.path() / "output";
  sandbox::ChildProcess process(shell);
  const auto exit = process.wait(kTimeout);
  std::string text = text_of(shell.output);
  if (!exit || exit->signal != 0)
    throw std::runtime_error("it does not end, or ended by a signal:\n" + commands + text);
  return {exit->code, std::move(text)};
}

}  // namespace hapax::support
