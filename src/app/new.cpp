// hapax new NAME: a project with a handler, its tables, its test and its configuration.
//
// A kind of handler is a list of layers, which are folders of templates/. Of files with one path
// the last layer's counts.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "template_files.hpp"

namespace hapax::app {
namespace {

namespace fs = std::filesystem;

struct NewOptions {
  std::string name;
  std::string folder;
  bool publish = false;
  bool outside = false;
  bool gate = false;
};

std::vector<std::string> layers_of(const NewOptions& options) {
  if (options.gate) return {"all", "gate"};
  if (options.publish) return {"all", "worker", "publish"};
  if (options.outside) return {"all", "worker", "outside"};
  return {"all", "worker"};
}

// Text by path.
std::map<std::string, const char*> files_of(const NewOptions& options) {
  std::map<std::string, const char*> files;
  for (const std::string& layer : layers_of(options))
    for (const TemplateFile& file : kTemplate)
      if (file.layer == layer) files[file.path] = file.text;
  return files;
}

// payments_eu → PaymentsEu
std::string class_name(const std::string& name) {
  std::string joined;
  bool upper = true;
  for (const char c : name) {
    if (c != '_') joined += upper ? static_cast<char>(std::toupper(c)) : c;
    upper = c == '_';
  }
  return joined;
}

// CMake, PostgreSQL and C++ all use the name, so it is a word in each of them.
void require_name(const std::string& name) {
  static constexpr std::array kTaken{
      "all",     "clean",         "hapax",      "hapax_testing",          "help", "test", "install",
      "package", "rebuild_cache", "edit_cache", "list_install_components"};
  const auto is_inside = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  const bool is_word = !name.empty() && name.size() <= 40 && name[0] >= 'a' && name[0] <= 'z' &&
                       std::ranges::all_of(name, is_inside);
  if (!is_word)
    throw Stop(kUsage,
               "\"" + name +
                   "\" is no name for a handler: use up to 40 lower-case letters, digits and "
                   "_, a letter first, such as payments");
  if (name == "pg" || name.starts_with("pg_"))  // the role would be pg_worker
    throw Stop(kUsage,
               "PostgreSQL keeps roles whose names begin with pg_ to itself; choose "
               "another name");
  if (std::ranges::find(kTaken, name) != kTaken.end())
    throw Stop(kUsage, "CMake has a target called " + name + "; choose another name");
  // Class names that the project's test uses.
  static constexpr std::array kClasses{"double", "harness", "options", "record", "result"};
  if (std::ranges::find(kClasses, name) != kClasses.end())
    throw Stop(kUsage, "the test kit has a class called " + class_name(name) +
                           "; choose another name, such as " + name + "s");
}

std::string filled(std::string text, const std::string& name) {
  const std::pair<std::string, std::string> values[] = {{"@name@", name},
                                                        {"@Class@", class_name(name)}};
  for (const auto& [mark, value] : values)
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += value.size())
      text.replace(at, mark.size(), value);
  return text;
}

// handler_test.cpp → payments_test.cpp
fs::path target(const fs::path& folder, const std::string& name, fs::path path) {
  const std::string file = path.filename();
  if (file.starts_with("handler")) path.replace_filename(name + file.substr(7));
  return folder / path;
}

ExitCode make_project(const NewOptions& options) {
  require_name(options.name);
  const fs::path folder = options.folder.empty() ? options.name : options.folder;
  std::error_code error;
  if (fs::exists(folder, error) &&
      !(fs::is_directory(folder, error) && fs::is_empty(folder, error)))
    throw Stop(kFailed, folder.string() +
                            " is there and is not an empty folder; nothing was written. Choose "
                            "another with --into, or move it away");
  for (const auto& [name, text] : files_of(options)) {
    const fs::path path = target(folder, options.name, name);
    fs::create_directories(path.parent_path(), error);
    std::ofstream out(path, std::ios::binary);
    out << filled(text, options.name);
    out.close();
    if (!out) throw Stop(kFailed, "cannot write " + path.string());
  }
  std::printf(
      "%s holds the handler %s.hpp, its test, its tables and %s. Now:\n"
      "  cd %s\n"
      "  cmake --workflow --preset default    # builds it and runs its tests\n"
      "README.md there tells how to run it.\n",
      folder.c_str(), options.name.c_str(), options.gate ? "gate.json" : "worker.json",
      folder.c_str());
  return kDone;
}

}  // namespace

void add_new(CLI::App& app, CommandLine& line) {
  auto options = std::make_shared<NewOptions>();
  CLI::App* const command =
      app.add_subcommand("new", "Make a project for a handler, with its test");
  command->add_option("NAME", options->name, "Names the handler, its topic and its tables")
      ->required();
  command->add_option("--into", options->folder, "The folder to make (default: NAME)");
  CLI::Option* const publish = command->add_flag(
      "--publish", options->publish, "The handler also publishes a record to another topic");
  CLI::Option* const outside =
      command->add_flag("--outside", options->outside,
                        "The handler calls another system over HTTP, and books its answer");
  command->add_flag("--gate", options->gate, "The handler answers HTTP requests, by `hapax gate`")
      ->excludes(publish)
      ->excludes(outside);
  outside->excludes(publish);
  command->footer(
      "The project builds against an installed hapax. Needs cmake, ninja, a compiler,\n"
      "libgtest-dev and postgresql.\n"
      "Exit code 1 if the folder is there and not empty.\n"
      "Examples:\n"
      "  hapax new payments\n"
      "  hapax new payments --into services/payments\n"
      "  hapax new charges --outside");
  command->callback(
      [&line, options] { line.command = [options] { return make_project(*options); }; });
}

}  // namespace hapax::app
