// A worker and a gate that a real Prometheus scrapes, with the alerts of deploy/.
#pragma once

#include <gtest/gtest.h>
#include <httplib.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <thread>

#include "key/sha256.hpp"
#include "outside/shop.hpp"
#include "sandbox/child_process.hpp"
#include "sandbox/free_port.hpp"
#include "sandbox/temporary_folder.hpp"

namespace hapax::support {

using nlohmann::json;

inline std::string local(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

// Returns once `holds`. Prometheus tells no one what it has scraped, so this asks again.
inline void await_of_prometheus(const std::string& what, const std::function<bool()>& holds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= until) throw std::runtime_error("never: " + what);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string alert_rules() {
  return text_of(test::source_folder() / "deploy/prometheus/hapax.rules.yml");
}

// The same alerts for a test that cannot wait. Minutes are seconds. What has waited may be 3 s old.
// Retention may be 15 s behind, because it looks every 10 s. A second fence raises its alert.
inline std::string hurried_alert_rules() {
  std::string text = std::regex_replace(alert_rules(), std::regex(R"((\[|:|: )(\d+)m\b)"), "$1$2s");
  text = std::regex_replace(text, std::regex("\\) > 10\\b"), ") > 1");
  text = std::regex_replace(text, std::regex("6 \\* 3600"), "15");
  return std::regex_replace(text, std::regex("_seconds\\) > 300"), "_seconds) > 3");
}

class Prometheus {
 public:
  explicit Prometheus(const std::map<std::string, std::string>& addresses_by_job,
                      const std::string& alerts = alert_rules()) {
    const auto rules = folder_.path() / "rules.yml";
    std::ofstream(rules) << alerts;
    json jobs = json::array();
    for (const auto& [job, address] : addresses_by_job)
      jobs.push_back(
          {{"job_name", job},
           {"static_configs", {{{"targets", {address}}, {"labels", {{"app", "hapax"}}}}}}});
    std::ofstream(folder_.path() / "prometheus.yml")  // which is JSON, too
        << json{{"global", {{"scrape_interval", "1s"}, {"evaluation_interval", "500ms"}}},
                {"rule_files", json::array({rules.string()})},
                {"scrape_configs", jobs}};
    const std::string data = folder_.path() / "data";
    process_ = std::make_unique<sandbox::ChildProcess>(sandbox::Program{
        .argv = {"prometheus", "--config.file=" + (folder_.path() / "prometheus.yml").string(),
                 "--storage.tsdb.path=" + data, "--web.listen-address=" + local(port_)},
        .output = folder_.path() / "log"});
  }

  // What Prometheus finds. Throws: std::runtime_error if it calls the query wrong.
  json query(const std::string& expression) const {
    return ask("query", {{"query", expression}}).at("result");
  }

  bool has(const std::string& expression) const { return !query(expression).empty(); }

  // The rules by their names.
  std::map<std::string, json> alerts() const {
    std::map<std::string, json> found;
    const json told = ask("rules", {});
    for (const json& group : told.at("groups"))
      for (const json& rule : group.at("rules")) found[rule.at("name")] = rule;
    return found;
  }

  bool is_firing(const std::string& alert) const {
    return alerts().at(alert).at("state") == "firing";
  }
  // Pending or firing.
  bool is_raised(const std::string& alert) const {
    return alerts().at(alert).at("state") != "inactive";
  }

 private:
  json ask(const std::string& path, const httplib::Params& parameters) const {
    httplib::Client client("127.0.0.1", port_);
    const std::string whole = httplib::append_query_params("/api/v1/" + path, parameters);
    Answer answer;
    await_of_prometheus("an answer to " + whole, [&] {
      if (const auto got = client.Get(whole.c_str())) answer = {got->status, got->body};
      return answer.status != 0 && answer.status != 503;  // as while it starts
    });
    if (answer.status != 200) throw std::runtime_error(whole + ": " + answer.body);
    return json::parse(answer.body).at("data");
  }

  std::uint16_t port_ = sandbox::free_port();
  sandbox::TemporaryFolder folder_{"prometheus"};
  std::unique_ptr<sandbox::ChildProcess> process_;
};

// A worker with a route of each kind, and a gate, on one database.
struct Observed : Shop {
  Observed() : Shop(kNever, false, Site::on_mock_cluster) {
    for (const std::string& name : {charged, published}) Site::mock_cluster().create_topic(name, 1);
    std::ofstream(folder.path() / "tokens") << "ann " << key::hex(key::sha256("ann's")) << "\n";
    gate = std::make_unique<sandbox::ChildProcess>(of_the_gate("gate"));
    worker = std::make_unique<WorkerProcess>(options());
  }

  // `hapax <verb>` with the gate's configuration.
  sandbox::Program of_the_gate(const std::string& verb) const {
    return {.argv = {HAPAX_BINARY_DIR "/bin/hapax", verb, "-c",
                     test::source_folder() / "examples/payments/gate.json", "--plugin",
                     HAPAX_BINARY_DIR "/lib/libpayments.so"},
            .environment = {{"DATABASE_URL", site.database().worker().url},
                            {"TOKENS", folder.path() / "tokens"},
                            {"LISTEN", local(gate_port)},
                            {"ADMIN", local(gate_admin)}},
            .output = folder.path() / (verb + ".log")};
  }
  Said check_of_the_gate() const {
    const sandbox::Program program = of_the_gate("check");
    const auto exit = sandbox::ChildProcess(program).wait(std::chrono::seconds(60));
    return {exit ? exit->code : -1, text_of(program.output)};
  }

  WorkerOptions options() const {
    const auto route = [](const WorkerOptions& told) { return told.config.at("routes").at(0); };
    WorkerOptions all = site.options(
        "w", {{"publish", {{"topics", {receipts}}}}, {"admin", {{"listen", local(admin)}}}});
    all.config["routes"].push_back(route(site.options("w", patch())));
    all.config["routes"].push_back(
        route(site.options("w", {{"route", {{"handler", "publishing"}}}})));
    all.config["routes"][1]["topic"] = charged;
    all.config["routes"][2]["topic"] = published;
    return all;
  }

  void send_to(const std::string& topic, int number, const json& more) {
    Outgoing record = site.payment(number, more);
    record.topic = topic;
    record.partition = 0;
    producer.send(std::move(record));
  }

  // The answer of the gate to a payment.
  int pay_at_the_gate(const std::string& idempotency_key, const json& payment) const {
    httplib::Client client("127.0.0.1", gate_port);
    const auto answer = client.Post(
        "/payments",
        httplib::Headers{{"Authorization", "Bearer ann's"}, {"Idempotency-Key", idempotency_key}},
        payment.dump(), "application/json");
    return answer ? answer->status : 0;
  }

  std::string charged = site.topic() + "-charged";
  std::string published = site.topic() + "-published";
  std::string receipts = site.topic() + "-receipts";
  std::uint16_t admin = sandbox::free_port();
  std::uint16_t gate_port = sandbox::free_port();
  std::uint16_t gate_admin = sandbox::free_port();
  sandbox::TemporaryFolder folder{"observed"};
  std::unique_ptr<sandbox::ChildProcess> gate;
  std::unique_ptr<WorkerProcess> worker;
};

}  // namespace hapax::support
