#include "tools/demo/worker.hpp"

#include <deque>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "cli/command.hpp"
#include "tools/demo/handler.hpp"
#include "tools/demo/ledger.hpp"

namespace hapax::app {
namespace {

constexpr std::size_t kLastLines = 15;
constexpr std::chrono::seconds kDeath{10};

}  // namespace

DemoWorker::DemoWorker(const std::filesystem::path& folder, std::string name,
                       const std::string& bootstrap, const std::string& postgres_url)
    : name_(std::move(name)), config_(folder / (name_ + ".json")), log_(folder / (name_ + ".log")) {
  const nlohmann::ordered_json config{
      {"kafka",
       {{"bootstrap.servers", bootstrap},
        {"group.id", kDemoGroup},
        {"session.timeout.ms", std::chrono::milliseconds(kDemoSessionTimeout).count()},
        {"heartbeat.interval.ms", 1000},
        {"fetch.wait.max.ms", 50}}},
      {"postgres", {{"url", postgres_url}}},
      {"worker", {{"name", name_}}},
      {"routes",
       {{{"topic", kDemoTopic},
         {"handler", kDemoHandler},
         {"key", {{"header", "idempotency-key"}}}}}},
      {"admin", {{"listen", "127.0.0.1:0"}}}};
  std::ofstream file(config_);
  file << config.dump(2) << '\n';
  if (!file.flush()) throw std::runtime_error("cannot write " + config_.string());
}

void DemoWorker::start() {
  process_ = std::make_unique<sandbox::ChildProcess>(
      sandbox::Program{.argv = {"/proc/self/exe", "run", "--config", config_}, .output = log_});
}

void DemoWorker::kill() {
  process_->signal(SIGKILL);
  if (!process_->wait(kDeath)) throw Stop(kFailed, text() + " has outlived SIGKILL");
}

void DemoWorker::expect_running(std::chrono::milliseconds wait) {
  if (const auto exit = process_->wait(wait))
    throw Stop(kFailed, text() + " has ended by itself (" + exit->text() +
                            "); its log ends with\n" + last_lines());
}

std::string DemoWorker::text() const {
  return name_ + " (pid " + std::to_string(process_->pid()) + ")";
}

std::string DemoWorker::last_lines() const {
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

}  // namespace hapax::app
