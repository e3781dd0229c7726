// The alerts and the board of deploy/, in a real Prometheus that scrapes a worker and a gate.
#include "deploy/monitored.hpp"

#include <gmock/gmock.h>

#include <set>

namespace hapax::support {
namespace {

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

TEST(Monitoring, AnswersEachPanelAndEachAlertFromARunningWorkerAndGate) {
  if (!sandbox::find_in_path("prometheus")) GTEST_SKIP() << "no prometheus is installed";
  Observed site;
  const Prometheus prometheus({{"worker", local(site.admin)}, {"gate", local(site.gate_admin)}});
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
