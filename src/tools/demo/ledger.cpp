#include "tools/demo/ledger.hpp"

#include "store/operator/migrate.hpp"
#include "store/operator/roles.hpp"
#include "store/transaction.hpp"
#include "tools/demo/handler.hpp"

namespace hapax::app {

DemoLedger::DemoLedger(const std::string& url, const std::string& worker_role)
    : session_({.url = url, .application_name = "hapax demo"}) {
  session_.serve_handlers();
  store::migrate_up(session_);
  {
    store::Transaction transaction(session_);
    transaction.run(kDemoTable);
    transaction.run("CREATE ROLE " + worker_role + " LOGIN");
    transaction.run("GRANT SELECT, INSERT ON payments TO " + worker_role);
    transaction.commit();
  }
  store::grant_worker(session_, worker_role);
}

Rows DemoLedger::read(const std::string& text, const std::vector<Parameter>& values) {
  store::Transaction transaction(session_);
  return transaction.run(session_.execute(text, values));
}

std::int64_t DemoLedger::number(const std::string& text, const std::vector<Parameter>& values) {
  return read(text, values)[0][0].as<std::int64_t>();
}

std::string DemoLedger::server_version() {
  return read("SELECT split_part(current_setting('server_version'), ' ', 1)")[0][0].text();
}

std::int64_t DemoLedger::payments() { return number("SELECT count(*) FROM payments"); }

std::map<std::string, std::vector<std::int64_t>> DemoLedger::amounts() {
  std::map<std::string, std::vector<std::int64_t>> amounts;
  for (const Row row : read("SELECT id, amount_minor FROM payments"))
    amounts[row[0].text()].push_back(row[1].as<std::int64_t>());
  return amounts;
}

std::int64_t DemoLedger::keys(const std::string& status) {
  return number("SELECT count(*) FROM hapax.idempotency_keys WHERE status = $1", {status});
}

std::map<std::string, std::int64_t> DemoLedger::dead_letters() {
  std::map<std::string, std::int64_t> letters;
  for (const Row row : read("SELECT reason, count(*) FROM hapax.dead_letters GROUP BY reason"))
    letters[row[0].text()] = row[1].as<std::int64_t>();
  return letters;
}

std::map<std::int32_t, std::int64_t> DemoLedger::checkpoints() {
  std::map<std::int32_t, std::int64_t> offsets;
  for (const Row row : read("SELECT partition, next_offset FROM hapax.checkpoints "
                            "WHERE group_id = $1 AND topic = $2 AND next_offset IS NOT NULL",
                            {kDemoGroup, kDemoTopic}))
    offsets[row[0].as<std::int32_t>()] = row[1].as<std::int64_t>();
  return offsets;
}

std::int64_t DemoLedger::halts() {
  return number("SELECT count(*) FROM hapax.halts WHERE ended_at IS NULL");
}

DemoOwner DemoLedger::owner_of_most() {
  const Rows rows = read(
      "SELECT owner, count(*) FROM hapax.checkpoints WHERE owner IS NOT NULL "
      "GROUP BY owner ORDER BY 2 DESC, 1 LIMIT 1");
  if (rows.empty()) return {};
  return {rows[0][0].text(), rows[0][1].as<std::int64_t>()};
}

DemoUnfinished DemoLedger::unfinished(const std::string& worker) {
  return {number("SELECT count(*) FROM pg_stat_activity "
                 "WHERE application_name = 'hapax ' || $1 AND xact_start IS NOT NULL",
                 {worker}),
          number("SELECT count(*) FROM hapax.idempotency_keys k JOIN hapax.checkpoints c "
                 "USING (group_id, topic, partition) "
                 "WHERE c.owner = $1 AND k.status = 'completed' "
                 "AND k.kafka_offset >= c.next_offset",
                 {worker})};
}

}  // namespace hapax::app
