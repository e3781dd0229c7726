#include "support/worker_process.hpp"

#include <httplib.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace hapax::support {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kWorkerPatience{60'000};
constexpr milliseconds kAskWorkerAgain{50};

std::filesystem::path output_file(const std::filesystem::path& folder, int start) {
  return folder / ("log." + std::to_string(start));
}

}  // namespace

WorkerProcess::WorkerProcess(WorkerOptions options)
    : options_(std::move(options)), folder_("worker") {
  if (!options_.config.contains("admin")) options_.config["admin"] = {{"listen", "127.0.0.1:0"}};
  options_.config["log"]["format"] = "json";
  std::ofstream(folder_.path() / "worker.json") << options_.config.dump(2);
  start();
}

void WorkerProcess::start() {
  ++starts_;
  events_.clear();
  sandbox::Program program;
  program.argv = {
      std::string(HAPAX_BINARY_DIR "/bin/hapax") + (options_.crash_at.empty() ? "" : "_crashable"),
      options_.command, "-c", folder_.path() / "worker.json"};
  if (!options_.crash_at.empty()) program.environment["HAPAX_CRASH_AT"] = options_.crash_at;
  program.output = output_file(folder_.path(), starts_);
  process_ = std::make_unique<sandbox::ChildProcess>(program);
}

void WorkerProcess::start_again(const std::string& crash_at) {
  if (process_->running()) throw std::logic_error("start_again: it still runs");
  options_.crash_at = crash_at;
  start();
}

void WorkerProcess::read_lines() {
  while (const auto line = process_->read_line(milliseconds(0))) {
    auto event = nlohmann::json::parse(*line, nullptr, false);
    if (!event.is_discarded()) events_.push_back(std::move(event));
  }
}

std::vector<nlohmann::json> WorkerProcess::matching(const std::string& event,
                                                    const nlohmann::json& fields) {
  std::vector<nlohmann::json> found;
  for (const nlohmann::json& line : events_) {
    if (line.value("event", "") != event) continue;
    nlohmann::json merged = line;
    merged.merge_patch(fields.is_null() ? nlohmann::json::object() : fields);
    if (merged == line) found.push_back(line);
  }
  return found;
}

nlohmann::json WorkerProcess::await(const std::string& event, const nlohmann::json& fields,
                                    std::size_t times, milliseconds timeout) {
  const auto found = find(event, fields, times, timeout);
  if (!found) fail("ended before it said " + event);
  return *found;
}

bool WorkerProcess::dies_before(const std::string& event) {
  return !find(event, {}, 1, kWorkerPatience).has_value();
}

// Nothing if the worker has ended without that log line.
std::optional<nlohmann::json> WorkerProcess::find(const std::string& event,
                                                  const nlohmann::json& fields, std::size_t times,
                                                  milliseconds timeout) {
  const auto deadline = steady_clock::now() + timeout;
  for (;;) {
    const bool ended = !process_->running();  // before the last lines are read
    read_lines();
    const auto found = matching(event, fields);
    if (found.size() >= times) return found[times - 1];
    if (ended) return std::nullopt;
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) fail("did not say " + event + " " + fields.dump() + " in time");
    if (const auto line = process_->read_line(std::min(left, milliseconds(1000)))) {
      auto parsed = nlohmann::json::parse(*line, nullptr, false);
      if (!parsed.is_discarded()) events_.push_back(std::move(parsed));
    }
  }
}

std::size_t WorkerProcess::count(const std::string& event, const nlohmann::json& fields) {
  read_lines();
  return matching(event, fields).size();
}

void WorkerProcess::terminate() { process_->signal(SIGTERM); }

sandbox::Exit WorkerProcess::stop(milliseconds timeout) {
  process_->signal(SIGTERM);
  return ended(timeout);
}

sandbox::Exit WorkerProcess::ended(milliseconds timeout) {
  const auto exit = process_->wait(timeout);
  if (!exit) fail("did not end in time");
  return *exit;
}

void WorkerProcess::kill() {
  process_->signal(SIGKILL);
  (void)ended();
}

void WorkerProcess::freeze() { process_->signal(SIGSTOP); }

void WorkerProcess::thaw() { process_->signal(SIGCONT); }

std::string WorkerProcess::address() {
  return "http://127.0.0.1:" + std::to_string(await("admin").at("port").get<int>());
}

Answer WorkerProcess::get(const std::string& path) {
  httplib::Client client(address());
  const auto answer = client.Get(path.c_str());
  return answer ? Answer{answer->status, answer->body} : Answer{};
}

void WorkerProcess::await_ready() {
  const auto deadline = steady_clock::now() + kWorkerPatience;
  Answer answer;
  while ((answer = get("/readyz")).status != 200) {
    if (steady_clock::now() >= deadline) fail("is not ready: " + answer.body);
    std::this_thread::sleep_for(kAskWorkerAgain);
  }
}

void WorkerProcess::await_not_ready(const std::string& reason) {
  const auto deadline = steady_clock::now() + kWorkerPatience;
  Answer answer = get("/readyz");
  while (answer.status != 503 || answer.body.find(reason) == std::string::npos) {
    if (steady_clock::now() >= deadline)
      fail("/readyz does not say 503 \"" + reason + "\" but " + std::to_string(answer.status) +
           ": " + answer.body);
    std::this_thread::sleep_for(kAskWorkerAgain);
    answer = get("/readyz");
  }
}

void WorkerProcess::await_metric(const std::string& line) {
  const auto deadline = steady_clock::now() + kWorkerPatience;
  while (get("/metrics").body.find(line + '\n') == std::string::npos) {
    if (steady_clock::now() >= deadline) fail("never showed " + line);
    std::this_thread::sleep_for(kAskWorkerAgain);
  }
}

std::string WorkerProcess::output() const {
  std::ostringstream text;
  text << std::ifstream(output_file(folder_.path(), starts_)).rdbuf();
  return text.str();
}

void WorkerProcess::fail(const std::string& what) const {
  throw std::runtime_error("the worker " + what + "; its log:\n" + output());
}

}  // namespace hapax::support
