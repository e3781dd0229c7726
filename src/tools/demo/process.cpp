#include "tools/demo/process.hpp"

#include <deque>
#include <fstream>
#include <stdexcept>

#include "cli/command.hpp"
#include "tools/demo/handler.hpp"
#include "tools/demo/ledger.hpp"

namespace hapax::app {
namespace {

constexpr std::size_t kLastLines = 15;
constexpr std::chrono::seconds kDeath{10};

}  // namespace

std::unique_ptr<sandbox::PostgresServer> start_demo_postgres() {
  try {
    auto server = std::make_unique<sandbox::PostgresServer>();
    server->create_database("demo");
    return server;
  } catch (const std::exception& error) {
    throw Stop(kUnreachable,
               std::string("the demo needs a PostgreSQL server of its own: ") + error.what());
  }
}

DemoProcess::DemoProcess(const std::filesystem::path& folder, std::string name, std::string command,
                         const nlohmann::ordered_json& config)
    : name_(std::move(name)),
      command_(std::move(command)),
      config_(folder / (name_ + ".json")),
      log_(folder / (name_ + ".log")) {
  std::ofstream file(config_);
  file << config.dump(2) << '\n';
  if (!file.flush()) throw std::runtime_error("cannot write " + config_.string());
}

void DemoProcess::start() {
  process_ = std::make_unique<sandbox::ChildProcess>(
      sandbox::Program{.argv = {"/proc/self/exe", command_, "--config", config_}, .output = log_});
}

void DemoProcess::kill() {
  process_->signal(SIGKILL);
  if (!process_->wait(kDeath)) throw Stop(kFailed, text() + " has outlived SIGKILL");
}

void DemoProcess::expect_running(std::chrono::milliseconds wait) {
  if (const auto exit = process_->wait(wait))
    throw Stop(kFailed, text() + " has ended by itself (" + exit->text() +
                            "); its log ends with\n" + last_lines());
}

std::string DemoProcess::text() const {
  return name_ + " (pid " + std::to_string(process_->pid()) + ")";
}

std::string DemoProcess::last_lines() const {
  std::deque<std::string> lines;
  std::ifstream file(log_);
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
    if (lines.size() > kLastLines) lines.pop_front();
  }
  std::string all;
  for (const std::string& line : lines) all += "  " + line + "\n";
  return all;
}

nlohmann::ordered_json demo_worker(const std::string& name, const std::string& bootstrap,
                                   const std::string& postgres_url) {
  return {{"kafka",
           {{"bootstrap.servers", bootstrap},
            {"group.id", kDemoGroup},
            {"session.timeout.ms", std::chrono::milliseconds(kDemoSessionTimeout).count()},
            {"heartbeat.interval.ms", 1000},
            {"fetch.wait.max.ms", 50}}},
          {"postgres", {{"url", postgres_url}}},
          {"worker", {{"name", name}}},
          {"routes",
           {{{"topic", kDemoTopic},
             {"handler", kDemoHandler},
             {"key", {{"header", "idempotency-key"}}}}}},
          {"admin", {{"listen", "127.0.0.1:0"}}}};
}

}  // namespace hapax::app
