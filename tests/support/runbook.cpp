#include "support/runbook.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>

#include "sandbox/child_process.hpp"
#include "sandbox/temporary_folder.hpp"

namespace hapax::support {
namespace {

constexpr std::chrono::minutes kTimeout{20};  // a busy machine compiles for minutes

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The blocks of shell commands under this heading, in their order.
std::vector<std::string> commands_under(const std::string& name, const std::string& heading) {
  const std::string page = text_of(std::filesystem::path(HAPAX_SOURCE_DIR) / name);
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
  if (blocks.empty()) throw std::runtime_error(name + " has nothing to type under " + heading);
  return blocks;
}

// A table of the handler's is called payments, too.
std::string with_names_of(const Site& site, std::string commands) {
  static const std::regex topic("(--topic |resume .*)\\bpayments\\b");
  static const std::regex group("(forget-group )payments\\b");
  static const std::regex installed("/usr/share/hapax/");
  commands = std::regex_replace(commands, topic, "$1" + site.topic());
  commands = std::regex_replace(commands, group, "$1" + site.group());
  return std::regex_replace(commands, installed, HAPAX_SOURCE_DIR "/sql/");
}

}  // namespace

Runbook::Runbook(const std::string& heading, const Site& site,
                 std::map<std::string, std::string> variables)
    : Runbook("docs/runbooks.md", heading, std::move(variables),
              [&](std::string block) { return with_names_of(site, std::move(block)); }) {}

Runbook::Runbook(const std::string& page, const std::string& heading,
                 std::map<std::string, std::string> variables, const Change& changed)
    : heading_(heading), variables_(std::move(variables)) {
  for (const std::string& block : commands_under(page, heading)) blocks_.push_back(changed(block));
  const char* const path = std::getenv("PATH");
  variables_.try_emplace(
      "PATH", std::string(HAPAX_BINARY_DIR "/bin:") + (path != nullptr ? path : "/usr/bin:/bin"));
  set("USER", "operator");
}

Runbook::~Runbook() { EXPECT_EQ(typed_, blocks_.size()) << "not all typed under " << heading_; }

void Runbook::set(const std::string& variable, const std::string& value) {
  variables_[variable] = value;
}

std::string Runbook::type_next(const std::filesystem::path& folder) {
  const std::string& commands = blocks_.at(typed_++);
  const sandbox::TemporaryFolder output("typed");
  sandbox::Program shell;
  shell.argv = {"/bin/sh", "-euxc", commands};
  shell.environment = variables_;
  shell.folder = folder;
  shell.output = output.path() / "output";
  sandbox::ChildProcess process(shell);
  const auto exit = process.wait(kTimeout);
  std::string text = text_of(shell.output);
  if (!exit || exit->signal != 0)
    throw std::runtime_error("it does not end, or ended by a signal:\n" + commands + text);
  EXPECT_EQ(exit->code, 0) << text;
  return text;
}

}  // namespace hapax::support
