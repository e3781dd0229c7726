// The examples as their README runs them: their configuration, schema and handler, fed with what a
// real topic brings, and what they wrote compared.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "kafka/mock_cluster.hpp"
#include "sandbox/child_process.hpp"
#include "sandbox/temporary_folder.hpp"
#include "support/database.hpp"
#include "support/group_lag.hpp"
#include "support/producer.hpp"
#include "support/read_records.hpp"

namespace hapax::support {
namespace {

using namespace std::chrono_literals;

constexpr const char* kHapax = HAPAX_BINARY_DIR "/bin/hapax";
constexpr int kPartitions = 2;

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// A record as a producer with idempotency keys sends it.
Outgoing keyed(const std::string& key, const std::string& payload) {
  return {.payload = payload, .key = key, .headers = {{"idempotency-key", key}}};
}

// Runs `command` with examples/<folder>/worker.json on the records until the group has no lag.
// The group is called as the example calls it: `name`.
class Example {
 public:
  // `topic`: that the example consumes; `name` if it is empty. `outbound`: that it publishes to.
  explicit Example(const std::string& name, const std::string& topic = {},
                   const std::string& outbound = {})
      : name_(name), topic_(topic.empty() ? name : topic) {
    cluster_.create_topic(topic_, kPartitions);
    if (!outbound.empty()) cluster_.create_topic(outbound, 1);
    database_.run(text_of(folder() / "schema.sql"));
    database_.run("GRANT ALL ON ALL TABLES IN SCHEMA public TO hapax_worker");
  }

  void run(std::vector<std::string> command, const std::vector<Outgoing>& records) {
    Producer producer(cluster_.bootstrap());
    for (Outgoing record : records) {
      record.topic = topic_;
      producer.send(record);
    }
    command.insert(command.begin() + 1, {"run", "-c", folder() / "worker.json"});
    sandbox::ChildProcess worker({.argv = command,
                                  .environment = {{"KAFKA", cluster_.bootstrap()},
                                                  {"DATABASE_URL", database_.worker().url},
                                                  {"ADMIN", "127.0.0.1:0"}},
                                  .output = output_.path() / "log"});
    await_no_lag(cluster_.bootstrap(), name_, topic_, kPartitions);
    database_.wait_until("SELECT count(*) FROM hapax.outbox", "0");
    worker.signal(SIGTERM);
    const auto exit = worker.wait(20s);
    ASSERT_TRUE(exit && exit->success()) << text_of(output_.path() / "log");
  }

  std::string value(const std::string& sql) { return database_.value(sql); }
  std::vector<Incoming> records(const std::string& topic) {
    return read_records(cluster_.bootstrap(), topic, 0);
  }

 private:
  std::filesystem::path folder() const { return test::source_folder() / "examples" / name_; }

  std::string name_, topic_;
  kafka::MockCluster cluster_;
  test::Database database_;
  sandbox::TemporaryFolder output_{"example"};
};

constexpr const char* kDeadLetters = "SELECT reason, error FROM hapax.dead_letters ORDER BY 1, 2";

TEST(Examples, HelloCountsEachGreetingOnce) {
  Example hello("hello");
  hello.run(
      {kHapax, "--plugin", HAPAX_BINARY_DIR "/lib/libhello.so"},
      {keyed("a", R"({"name": "Ada"})"), keyed("a", R"({"name": "Ada"})"),
       keyed("b", R"({"name": "Ada"})"), keyed("c", R"({"name": "Grace"})"), keyed("d", R"({})")});
  EXPECT_EQ(hello.value("SELECT name, count FROM greetings ORDER BY 1"), "Ada|2\nGrace|1");
  EXPECT_EQ(hello.value(kDeadLetters), "rejected|nobody to greet");
}

class PaymentsExample : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(PaymentsExample, BooksEachPaymentOnce) {
  Example payments("payments");
  const std::string first = R"({"id": "p1", "account": "a", "amount_minor": 1250})";
  payments.run(GetParam(), {keyed("p1", first), keyed("p1", first),
                            keyed("p1", R"({"id": "p1", "account": "a", "amount_minor": 9999})"),
                            keyed("p2", R"({"id": "p2", "account": "b", "amount_minor": 300})"),
                            keyed("p3", R"({"id": "p3", "account": "b", "amount_minor": -1})")});
  EXPECT_EQ(payments.value("SELECT id, account, amount_minor FROM payments ORDER BY 1"),
            "p1|a|1250\np2|b|300");
  EXPECT_EQ(payments.value("SELECT reason FROM hapax.dead_letters ORDER BY 1"),
            "payload_drift\nrejected");
  EXPECT_EQ(payments.value("SELECT result FROM hapax.idempotency_keys WHERE key = 'p1'"),
            R"({"status":"booked"})");
}

INSTANTIATE_TEST_SUITE_P(
    BothWays, PaymentsExample,
    testing::Values(std::vector<std::string>{kHapax, "--plugin",
                                             HAPAX_BINARY_DIR "/lib/libpayments.so"},
                    std::vector<std::string>{HAPAX_BINARY_DIR "/bin/payments_worker"}),
    [](const auto& test) { return test.param.size() > 1 ? "AsPlugin" : "LinkedIn"; });

TEST(Examples, ReceiptsPublishesOneForEachPayment) {
  Example receipts("receipts", "payments", "receipts");
  const std::string first = R"({"id": "p1", "account": "a", "amount_minor": 1250})";
  receipts.run({kHapax, "--plugin", HAPAX_BINARY_DIR "/lib/libreceipts.so"},
               {keyed("p1", first), keyed("p1", first),
                keyed("p2", R"({"id": "p2", "account": "a", "amount_minor": 300})"),
                keyed("p3", R"({"id": "p3", "account": "a", "amount_minor": -1})")});
  EXPECT_EQ(receipts.value("SELECT string_agg(id, ' ' ORDER BY id) FROM booked"), "p1 p2");
  std::set<std::string> payloads, keys;
  for (const Incoming& record : receipts.records("receipts")) {
    EXPECT_EQ(record.key, "a");
    EXPECT_TRUE(payloads.insert(record.payload.value_or("")).second);
    for (const auto& [name, value] : record.headers)
      if (name == "idempotency-key") keys.insert(value.value_or(""));
  }
  EXPECT_EQ(payloads, (std::set<std::string>{R"({"amount_minor":1250,"payment":"p1"})",
                                             R"({"amount_minor":300,"payment":"p2"})"}));
  EXPECT_EQ(keys.size(), 2U);
}

TEST(Examples, StatementsBooksEachReceiptOnceAndInOrder) {
  Example receipts("receipts", "payments", "receipts");
  std::vector<Outgoing> payments = {
      keyed("p1", R"({"id": "p1", "account": "a", "amount_minor": 1250})"),
      keyed("p2", R"({"id": "p2", "account": "a", "amount_minor": 300})")};
  for (Outgoing& payment : payments) payment.key = "a";
  receipts.run({kHapax, "--plugin", HAPAX_BINARY_DIR "/lib/libreceipts.so"}, payments);
  std::vector<Outgoing> published;
  for (const Incoming& record : receipts.records("receipts"))
    published.push_back({.payload = record.payload, .key = record.key, .headers = record.headers});
  ASSERT_EQ(published.size(), 2U);
  const auto repeats = published;  // as by a relay that died
  published.insert(published.end(), repeats.begin(), repeats.end());
  Example statements("statements", "receipts");
  statements.run({kHapax, "--plugin", HAPAX_BINARY_DIR "/lib/libstatements.so"}, published);
  EXPECT_EQ(statements.value("SELECT account, payment, amount_minor FROM entries ORDER BY nr"),
            "a|p1|1250\na|p2|300");
}

}  // namespace
}  // namespace hapax::support
