#include "support/chain.hpp"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <thread>
#include <tuple>

#include "support/command.hpp"
#include "support/kafka_admin.hpp"
#include "support/read_records.hpp"

namespace hapax::support {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr int kPartitions = 3;
constexpr auto kChainPatience = 180s;
constexpr auto kAskChainAgain = 20ms;

constexpr const char* kUnsettled =
    "SELECT (SELECT count(*) FROM hapax.dead_letters) + "
    "(SELECT count(*) FROM hapax.halts WHERE ended_at IS NULL) + "
    "(SELECT count(*) FROM hapax.outbox_halts WHERE ended_at IS NULL)";

std::string header(const Incoming& record, const std::string& name) {
  for (const auto& [found, value] : record.headers)
    if (found == name) return value.value_or("");
  return "";
}

}  // namespace

Chain::Chain() : receipts_(site_.topic() + ".receipts"), producer_(site_.bootstrap()) {
  create_topic(site_.bootstrap(), receipts_, kPartitions);
  ledger_.run(
      "CREATE TABLE receipts (nr bigserial, id text, account text, amount_minor bigint, "
      "sequence bigint); GRANT SELECT, INSERT ON receipts TO hapax_worker; "
      "GRANT USAGE ON receipts_nr_seq TO hapax_worker");
}

std::unique_ptr<WorkerProcess> Chain::payer(const std::string& name, const std::string& crash_at,
                                            const nlohmann::json& patch) const {
  nlohmann::json all = {{"publish", {{"topics", nlohmann::json::array({receipts_})}}},
                        {"route", {{"handler", "paying"}, {"options", {{"receipts", receipts_}}}}}};
  if (!patch.is_null()) all.merge_patch(patch);
  auto worker = site_.worker(name, all, crash_at);
  payers_config_ = worker->config();
  return worker;
}

std::unique_ptr<WorkerProcess> Chain::receiver(const std::string& name) const {
  return site_.worker(name, {{"kafka", {{"group.id", site_.group() + ".receivers"}}},
                             {"postgres", {{"url", ledger_.worker().url}}},
                             {"route", {{"topic", receipts_}, {"handler", "receiving"}}}});
}

void Chain::pay(int first, int count) { site_.pay(producer_, first, count); }

void Chain::await_receipts(int at_least) {
  const auto deadline = steady_clock::now() + kChainPatience;
  while (ledger_.count("SELECT count(*) FROM receipts") < at_least) {
    if (steady_clock::now() >= deadline)
      throw std::runtime_error("there are only " + ledger_.value("SELECT count(*) FROM receipts") +
                               " receipts of " + std::to_string(at_least) + ", in the outbox are " +
                               site_.database().value("SELECT count(*) FROM hapax.outbox") +
                               ", booked are " +
                               site_.database().value("SELECT count(*) FROM payments"));
    std::this_thread::sleep_for(kAskChainAgain);
  }
}

void Chain::await_sent() { site_.await("SELECT count(*) FROM hapax.outbox", "0", kChainPatience); }

int Chain::expect_exact(int payments) {
  site_.expect_exact(payments);
  const std::string wanted = std::to_string(payments);
  EXPECT_EQ(ledger_.value("SELECT count(*), count(DISTINCT id), sum(amount_minor) FROM receipts"),
            site_.database().value("SELECT count(*), count(DISTINCT id), sum(amount_minor) "
                                   "FROM payments"));
  EXPECT_EQ(ledger_.value("SELECT count(*) FROM receipts"), wanted);
  // Both ledgers have one order per account.
  EXPECT_EQ(
      ledger_.value("SELECT string_agg(id, ' ' ORDER BY account, nr) FROM receipts"),
      site_.database().value("SELECT string_agg(id, ' ' ORDER BY account, nr) FROM payments"));
  EXPECT_EQ(ledger_.value(kUnsettled), "0");
  EXPECT_EQ(site_.database().value(kUnsettled), "0");
  return expect_topic_exact(payments);
}

int Chain::expect_topic_exact(int payments) {
  std::map<std::string, Incoming> seen;        // by idempotency key
  std::map<std::string, std::int64_t> counts;  // by account
  int repeats = 0;
  for (int partition = 0; partition < kPartitions; ++partition) {
    for (const Incoming& record : read_records(site_.bootstrap(), receipts_, partition)) {
      const auto [first, is_new] = seen.emplace(header(record, "idempotency-key"), record);
      if (is_new) {
        EXPECT_EQ(nlohmann::json::parse(record.payload.value()).at("sequence"),
                  counts[record.key.value()]++)
            << "the order of " << *record.key << " is lost";
        continue;
      }
      ++repeats;
      const auto fields = [](const Incoming& of) {
        return std::tie(of.key, of.payload, of.headers);
      };
      EXPECT_EQ(fields(first->second), fields(record)) << "another record under the same key";
    }
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(payments));
  EXPECT_FALSE(seen.contains(""));
  const Said audit = hapax({"audit", "--topic", receipts_, "--json"}, payers_config_);
  EXPECT_EQ(audit.code, 0) << audit.text;
  const auto told = nlohmann::json::parse(audit.text);
  EXPECT_EQ(told.at("published").at("topics").at(0).at("sent"), payments);
  EXPECT_EQ(told.at("outbound").at("missing"), 0);
  return repeats;
}

}  // namespace hapax::support
