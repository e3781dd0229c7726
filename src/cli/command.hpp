// What all commands share: reading their configuration, and ending with a clear sentence.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cli/exit_code.hpp"
#include "config/config.hpp"
#include "config/gate.hpp"
#include "flow/route.hpp"
#include "hapax/handler.hpp"
#include "store/session.hpp"

namespace CLI {
class App;
}

namespace hapax::app {

// Ends the command: the sentence goes to stderr, the code to the shell.
class Stop : public std::runtime_error {
 public:
  Stop(ExitCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// Filled while the command line is parsed. Then the named command runs.
struct CommandLine {
  std::vector<HandlerFactory> linked_handlers;
  std::function<ExitCode()> command;
};

// All commands. Each has a file of its own with its options, help and examples.
void add_commands(CLI::App& app, CommandLine& line);
void add_run(CLI::App& app, CommandLine& line);
void add_relay(CLI::App& app, CommandLine& line);
void add_gate(CLI::App& app, CommandLine& line);
void add_migrate(CLI::App& app, CommandLine& line);
void add_check(CLI::App& app, CommandLine& line);
void add_status(CLI::App& app, CommandLine& line);
void add_resume(CLI::App& app, CommandLine& line);
void add_keys(CLI::App& app, CommandLine& line);
void add_dead(CLI::App& app, CommandLine& line);
void add_outbox(CLI::App& app, CommandLine& line);
void add_outside(CLI::App& app, CommandLine& line);
void add_offsets(CLI::App& app, CommandLine& line);
void add_explain(CLI::App& app, CommandLine& line);
void add_console(CLI::App& app, CommandLine& line);
void add_audit(CLI::App& app, CommandLine& line);
void add_record(CLI::App& app, CommandLine& line);
void add_new(CLI::App& app, CommandLine& line);
void add_demo(CLI::App& app, CommandLine& line);
void add_bench(CLI::App& app, CommandLine& line);

// The options that most commands share.
struct ConfigOption {
  std::string path;
  std::vector<std::string> plugins;
};
void add_config(CLI::App& command, ConfigOption& option);

// Reads the configuration. Prints warnings to stderr, or adds them to `warnings` if that is given.
// Throws: Stop(kConfigWrong) with all mistakes; if `linked` is given, also with those of handlers.
config::Config load(const ConfigOption& option, std::vector<std::string>* warnings = nullptr,
                    const std::vector<HandlerFactory>* linked = nullptr);

// The configuration of a gate. Adds its warnings. Throws: Stop(kConfigWrong) with all mistakes.
config::GateConfig load_gate(const ConfigOption& option, std::vector<std::string>& warnings);

// For a command that reads hapax's tables only: the configuration of a worker, or what a gate's has
// in common with it. A gate that neither publishes nor accepts has no group.id. Throws: as load().
config::Config load_worker_or_gate(const ConfigOption& option);

// The routes with their handlers, from plugins and linked ones.
// Throws: Stop(kConfigWrong) with all missing handlers, and the names of those that exist.
std::vector<flow::Route> routes_of(const config::Config& config, const ConfigOption& option,
                                   const std::vector<HandlerFactory>& linked);

// A session for a command. Throws: Stop(kUnreachable).
store::Session connect(const config::Config& config);

}  // namespace hapax::app
