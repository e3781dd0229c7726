#include "hapax/main.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>
#include <sstream>
#include <string_view>

#include "cli/command.hpp"
#include "cli/version.hpp"
#include "config/redact.hpp"
#include "config/suggest.hpp"
#include "observe/escape.hpp"
#include "store/connect_error.hpp"
#include "store/fault.hpp"

namespace hapax {
namespace {

constexpr const char* kFooter =
    "Exit codes:\n"
    "  0  done\n"
    "  1  it ran, and the answer is no (a check failed, something was not found)\n"
    "  2  the command line is wrong\n"
    "  3  the configuration is wrong\n"
    "  4  Kafka or PostgreSQL cannot be reached, or a topic or the schema is missing\n"
    "\n"
    "`hapax COMMAND --help` shows examples.";

int say(int code, const std::string& sentence) {
  // The sentence may quote a message or a server.
  std::string escaped;
  std::size_t from = 0;
  for (std::size_t end; (end = sentence.find('\n', from)) != std::string::npos; from = end + 1)
    escaped += observe::escape_for_terminal(sentence.substr(from, end - from)) + "\n";
  escaped += observe::escape_for_terminal(sentence.substr(from));
  std::fprintf(stderr, "hapax: %s\n", escaped.c_str());
  return code;
}

// A complaint quotes a word that is wrong in its place. It may be the value of --url.
std::string without_secrets(std::string text, int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word.starts_with('-')) word.remove_prefix(std::min(word.find('=') + 1, word.size()));
    if (word.find("://") == std::string_view::npos &&
        word.find("password") == std::string_view::npos)
      continue;
    const std::string shown = config::redact_url(word);
    for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += shown.size())
      text.replace(at, word.size(), shown);
  }
  return text;
}

// If a word in place of a command is none, a sentence with the nearest command.
std::optional<std::string> unknown_command(CLI::App* app, int argc, char** argv) {
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const std::vector<CLI::App*> commands = app->get_subcommands([](CLI::App*) { return true; });
    if (commands.empty()) break;
    std::vector<std::string> names;
    for (const CLI::App* const command : commands) names.push_back(command->get_name());
    const auto found = std::ranges::find(names, argv[i]);
    if (found == names.end()) {
      const std::string near = config::closest(argv[i], names);
      std::string known;
      for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
      return std::string("there is no command \"") + argv[i] + "\"; " +
             (near.empty() ? "" : "did you mean " + near + "? ") + "There are " + known;
    }
    app = commands[static_cast<std::size_t>(found - names.begin())];
  }
  return std::nullopt;
}

}  // namespace

void app::add_commands(CLI::App& app, CommandLine& line) {
  add_run(app, line);
  add_relay(app, line);
  add_gate(app, line);
  add_migrate(app, line);
  add_check(app, line);
  add_status(app, line);
  add_resume(app, line);
  add_keys(app, line);
  add_dead(app, line);
  add_outbox(app, line);
  add_outside(app, line);
  add_offsets(app, line);
  add_explain(app, line);
  add_console(app, line);
  add_audit(app, line);
  add_record(app, line);
  add_new(app, line);
  add_demo(app, line);
  add_bench(app, line);
}

Main& Main::on(HandlerFactory handler) {
  handlers_.push_back(std::move(handler));
  return *this;
}

int Main::run(int argc, char** argv) {
  CLI::App parser("hapax: Kafka consumers whose effects in PostgreSQL happen exactly once",
                  "hapax");
  parser.require_subcommand(1);
  parser.set_version_flag("--version", app::version_text());
  parser.footer(kFooter);
  app::CommandLine line;
  line.linked_handlers = handlers_;
  app::add_commands(parser, line);
  try {
    parser.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0)
      if (const auto unknown = unknown_command(&parser, argc, argv))
        return say(app::kUsage, without_secrets(*unknown, argc, argv));
    if (std::string_view(error.what()) == "--config is required")
      return say(app::kUsage,
                 "which configuration? Name it with -c, such as -c worker.json, or in the variable "
                 "HAPAX_CONFIG");
    std::ostringstream errors;
    const bool is_done = parser.exit(error, std::cout, errors) == 0;
    std::fputs(without_secrets(errors.str(), argc, argv).c_str(), stderr);
    return is_done ? app::kDone : app::kUsage;
  }
  try {
    const int code = line.command();
    // If the disk is full, the output is cut short, and a reader would take it for all. The output
    // of a worker's handlers is not checked.
    if (!parser.got_subcommand("run") && !parser.got_subcommand("gate") &&
        (std::fflush(stdout) != 0 || std::ferror(stdout) != 0))
      return say(app::kFailed, "this was done, but its output could not be written whole");
    return code;
  } catch (const app::Stop& stop) {
    return say(stop.code(), without_secrets(stop.what(), argc, argv));
  } catch (const store::DatabaseError& error) {
    const bool refused = error.fault().kind == store::Fault::Kind::sql;
    return say(
        refused ? app::kFailed : app::kUnreachable,
        "PostgreSQL: " + (refused ? error.what() : store::explain_outage("", error.what()).line));
  } catch (const std::exception& error) {
    return say(app::kFailed, error.what());
  }
}

}  // namespace hapax
