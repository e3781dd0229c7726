// The alerts and the board of deploy/, in a real Prometheus that scrapes a worker and a gate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <fstream>
#include <regex>
#include <set>

#include "key/sha256.hpp"
#include "outside/shop.hpp"
#include "sandbox/free_port.hpp"

namespace hapax::support {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using std::chrono::steady_clock;

std::string local(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

// Returns once `holds`. Prometheus tells no one what it has scraped, so this asks again.
void await_of_prometheus(const std::string& what, const std::function<bool()>& holds) {
  const auto until = steady_clock::now() + 60s;
  while (!holds()) {
    if (steady_clock::now() >= until) throw std::runtime_error("never: " + what);
    std::this_thread::sleep_for(100ms);
  }
}

class Prometheus {
 public:
  explicit Prometheus(const std::map<std::string, std::string>& addresses_by_job) {
    const auto rules = test::source_folder() / "deploy/prometheus/hapax.rules.yml";
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

// The queries of all panels, as Grafana sends them.
std::vector<std::string> queries_of_the_board() {
  std::vector<std::string> all;
  const json board =
      json::parse(std::ifstream(test::source_folder() / "deploy/grafana/hapax.json"));
  for (const json& panel : board.at("panels")) {
    if (!panel.contains("targets")) continue;
    for (const json& target : panel["targets"]) {
      std::string query = target.at("expr");
      query = std::regex_replace(query, std::regex("\\$job"), ".+");
      all.push_back(std::regex_replace(query, std::regex("\\$__rate_interval"), "1m"));
    }
  }
  return all;
}

// A worker with a route of each kind, and a gate, on one database.
struct Observed : Shop {
  Observed() : Shop(kNever, false, Site::on_mock_cluster) {
    for (const std::string& name : {charged, published}) Site::mock_cluster().create_topic(name, 1);
    std::ofstream(folder.path() / "tokens") << "ann " << key::hex(key::sha256("ann's")) << "\n";
    gate = std::make_unique<sandbox::ChildProcess>(
        sandbox::Program{.argv = {HAPAX_BINARY_DIR "/bin/hapax", "gate", "-c",
                                  test::source_folder() / "examples/payments/gate.json", "--plugin",
                                  HAPAX_BINARY_DIR "/lib/libpayments.so"},
                         .environment = {{"DATABASE_URL", site.database().worker().url},
                                         {"TOKENS", folder.path() / "tokens"},
                                         {"LISTEN", local(gate_port)},
                                         {"ADMIN", local(gate_admin)}},
                         .output = folder.path() / "log"});
    worker = std::make_unique<WorkerProcess>(options());
  }

  WorkerOptions options() const {
    const auto route = [](const WorkerOptions& told) { return told.config.at("routes").at(0); };
    WorkerOptions all = site.options("w", {{"publish", {{"topics", {receipts}}}}});
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
  std::uint16_t gate_port = sandbox::free_port();
  std::uint16_t gate_admin = sandbox::free_port();
  sandbox::TemporaryFolder folder{"observed"};
  std::unique_ptr<sandbox::ChildProcess> gate;
  std::unique_ptr<WorkerProcess> worker;
};

TEST(Monitoring, AnswersEachPanelAndEachAlertFromARunningWorkerAndGate) {
  if (!sandbox::find_in_path("prometheus")) GTEST_SKIP() << "no prometheus is installed";
  Observed site;
  const Prometheus prometheus(
      {{"worker", local(site.worker->await("admin").at("port").get<std::uint16_t>())},
       {"gate", local(site.gate_admin)}});
  site.worker->await("partition_started", {}, 4);
  for (const char* at_zero : {"hapax_messages_total", "hapax_gate_requests_total"})
    await_of_prometheus(at_zero, [&] { return prometheus.has(at_zero); });

  // One of each fate.
  site.send_to(site.site.topic(), 0, {});
  site.send_to(site.site.topic(), 1, {{"do", "fail"}});
  site.producer.send(site.site.payment(3, {{"do", "commit"}}));  // halts its route
  site.send_to(site.charged, 4, {});
  site.send_to(site.charged, 5, {{"gateway", "cut_after"}});
  site.send_to(site.published, 6, {{"publish", {{{"topic", site.receipts}, {"value", "paid"}}}}});
  const json payment = {{"id", "p7"}, {"account", "a"}, {"amount_minor", 1}};
  EXPECT_EQ(site.pay_at_the_gate("seven", payment), 200);
  EXPECT_EQ(site.pay_at_the_gate("eight", {{"amount_minor", 1}}), 500);
  const std::string halts = "HapaxHalted";
  for (const auto& raised : {halts, std::string("HapaxDeadLettersRising"),
                             std::string("HapaxOutcomeUnknown"), std::string("HapaxGateFailing")})
    await_of_prometheus(raised, [&] { return prometheus.is_raised(raised); });

  const std::vector<std::string> queries = queries_of_the_board();
  EXPECT_GT(queries.size(), 50U);
  std::string expressions;
  for (const std::string& query : queries) {
    await_of_prometheus("series for " + query, [&] { return prometheus.has(query); });
    expressions += query + '\n';
  }
  const auto alerts = prometheus.alerts();
  EXPECT_EQ(alerts.size(), 12U);
  for (const auto& [name, rule] : alerts) {
    EXPECT_EQ(rule.at("health"), "ok") << name << rule.value("lastError", "");
    expressions += rule.at("query").get<std::string>() + '\n';
  }

  // Those that the condition of an alert or `or vector(0)` would hide.
  const std::regex metric(R"(\b(hapax|process)_[a-z_]+)");
  std::set<std::string> names;
  for (std::sregex_iterator it(expressions.begin(), expressions.end(), metric), end; it != end;
       ++it)
    names.insert(it->str());
  EXPECT_GT(names.size(), 40U);
  for (const std::string& name : names) {
    const bool of_the_gate = name.starts_with("hapax_gate_");
    const std::string series = name + (of_the_gate ? R"({job="gate"})" : R"({job="worker"})");
    await_of_prometheus(series, [&] { return prometheus.has(series); });
  }

  // What the runbook tells to type ends them.
  const std::string& url = site.site.database().owner().url;
  const Said resumed = hapax(
      {"resume", site.site.topic(), "--decision", "skip", "--why", "a test", "--yes", "--url", url},
      site.worker->config());
  EXPECT_EQ(resumed.code, 0) << resumed.text;
  EXPECT_EQ(decide(site, *site.worker, "p5", {"--give-up"}).code, 0);
  for (const auto& ended : {halts, std::string("HapaxOutcomeUnknown")})
    await_of_prometheus("the end of " + ended, [&] { return !prometheus.is_raised(ended); });
  await_of_prometheus("no HapaxWorkerDown",
                      [&] { return !prometheus.is_raised("HapaxWorkerDown"); });
  site.worker->kill();
  await_of_prometheus("HapaxWorkerDown", [&] { return prometheus.is_raised("HapaxWorkerDown"); });
}

}  // namespace
}  // namespace hapax::support
