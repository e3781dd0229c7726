// hapax console: a web page that shows the group and takes an operator's decisions.
#include "console/console.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

#include "app/serving.hpp"
#include "cli/command.hpp"
#include "cli/operator.hpp"
#include "cli/output.hpp"
#include "cli/store_access.hpp"
#include "inspect/group_in_kafka.hpp"
#include "observe/log.hpp"

namespace hapax::app {
namespace {

struct ConsoleOptions {
  ConfigOption config;
  std::string url;
  std::string listen = "127.0.0.1:9470";
};

// Throws: Stop(kUsage) for anything but a port of this machine's loopback.
void set_address(const std::string& listen, console::ConsoleSetup& setup) {
  const std::size_t colon = listen.rfind(':');
  const std::string host = listen.substr(0, colon);
  if (host == "[::1]")
    setup.host = "::1";
  else if (host != "127.0.0.1" && host != "localhost")
    throw Stop(kUsage,
               "--listen " + listen +
                   ": the console listens on 127.0.0.1 or [::1] only, because it has no TLS and no "
                   "accounts. From another machine use ssh -L, or a proxy on this machine that "
                   "authenticates");
  const std::string port = colon == std::string::npos ? "" : listen.substr(colon + 1);
  const char* const end = port.data() + port.size();
  const auto [rest, error] = std::from_chars(port.data(), end, setup.port);
  if (error != std::errc() || rest != end || setup.port < 0 || setup.port > 65535)
    throw Stop(kUsage, "--listen " + listen + ": write HOST:PORT, such as 127.0.0.1:9470");
}

console::ConsoleSetup setup_of(const ConsoleOptions& options) {
  console::ConsoleSetup setup;
  set_address(options.listen, setup);
  setup.config = load(options.config);
  setup.config_path = options.config.path;
  setup.url = options.url;
  setup.who = operator_name({});
  const auto config = std::make_shared<config::Config>(setup.config);
  // Never ended, as group_in_kafka.hpp tells.
  auto& readers = *new Readers(*config);
  setup.ask_kafka = [config, &readers](KafkaSide& side) { ask_kafka(*config, readers, side); };
  return setup;
}

std::unique_ptr<console::Console> serve_console(console::ConsoleSetup setup) {
  try {
    return std::make_unique<console::Console>(std::move(setup));
  } catch (const std::runtime_error& error) {
    throw Stop(kFailed, std::string(error.what()) +
                            "; does another console run? --listen names another port");
  }
}

ExitCode run_console(const ConsoleOptions& options) {
  observe::log::set_up(observe::log::Level::error, observe::log::Format::text);
  console::ConsoleSetup setup = setup_of(options);
  const std::string group = group_of(setup.config);
  catch_signals();
  auto running = serve_console(std::move(setup));
  const std::string port = std::to_string(running->port());
  print_line("the console of group " + group + ":");
  print_line("  " + running->url());
  print_line("who has this URL may do what its role may; it ends with this process (^C)");
  print_line("from another machine: ssh -L " + port + ":" + running->address() +
             " HOST, then open the URL there");
  std::fflush(stdout);
  while (stop_signal == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  end_in_time([&running] { running.reset(); });
  return kDone;
}

}  // namespace

void add_console(CLI::App& app, CommandLine& line) {
  auto* const command = app.add_subcommand(
      "console", "Serve a web page that shows the group, and takes an operator's decisions");
  const auto options = std::make_shared<ConsoleOptions>();
  add_config(*command, options->config);
  command->add_option("--url", options->url,
                      "libpq URI of the operator's role; without it the page is read-only");
  command->add_option("--listen", options->listen,
                      "127.0.0.1:PORT or [::1]:PORT (default: 127.0.0.1:9470)");
  command->footer(
      "It prints the page's URL, with a token that is new at each start.\n"
      "Exit code 1 if the port is taken.\n\n"
      "Examples:\n"
      "  hapax console -c worker.json\n"
      "  hapax console -c worker.json --url $OPERATOR\n"
      "  ssh -L 9470:127.0.0.1:9470 worker-1    # then open the printed URL on this machine");
  command->callback(
      [&line, options] { line.command = [options] { return run_console(*options); }; });
}

}  // namespace hapax::app
