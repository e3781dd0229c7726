// Whole workers whose schema registry goes away, comes back, or has trouble with one schema.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "support/command.hpp"
#include "support/schema_registry.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

std::string varint(std::int64_t value) {
  std::string bytes;
  auto rest = static_cast<std::uint64_t>(value) << 1;
  for (; rest > 0x7f; rest >>= 7) bytes += static_cast<char>(0x80 | (rest & 0x7f));
  return bytes + static_cast<char>(rest);
}

class RegistryOutage : public testing::Test {
 protected:
  void knows(int schema) {
    registry.answer("/schemas/ids/" + std::to_string(schema), 200,
                    json{{"schema", R"(
        {"type": "record", "name": "Payment", "fields": [{"name": "id", "type": "string"},
         {"name": "account", "type": "string"}, {"name": "amount_minor", "type": "long"}]})"}}
                        .dump());
  }

  // As site.payment(), in Avro.
  Outgoing payment(int number, int schema) const {
    Outgoing record = site.payment(number);
    std::string bytes{'\0', '\0', '\0', '\0', static_cast<char>(schema)};
    for (const std::string& text :
         {"p" + std::to_string(number), "a" + std::to_string(number % 10)})
      bytes += varint(static_cast<std::int64_t>(text.size())) + text;
    record.payload = bytes + varint(number + 1);
    return record;
  }

  std::unique_ptr<WorkerProcess> worker(int batch = 1) const {
    return site.worker(
        "w", {{"route",
               {{"payload", {{"format", "avro"}, {"registry", {{"url", registry.url()}}}}},
                {"batch", batch}}}});
  }

  static void await_in_readiness(WorkerProcess& worker, const std::string& text,
                                 bool is_there = true) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    std::string body;
    while (((body = worker.get("/readyz").body).find(text) != body.npos) != is_there ||
           body.empty()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << body;
      std::this_thread::sleep_for(20ms);
    }
  }

  std::string up(int value) const {
    return "hapax_schema_registry_up{topic=\"" + site.topic() + "\"} " + std::to_string(value);
  }

  Site site = Site::on_mock_cluster(1);
  SchemaRegistry registry;
};

TEST_F(RegistryOutage, MakesMessagesOfNewSchemasWaitAndLosesNone) {
  knows(1);
  const auto worker = this->worker();
  Producer producer(site.bootstrap());
  for (int i = 0; i < 10; ++i) producer.send(payment(i, 1));
  site.await_booked(10);
  worker->await_metric(up(1));

  registry.go_away();
  for (int i = 10; i < 15; ++i) producer.send(payment(i, 2));
  for (int i = 15; i < 20; ++i) producer.send(payment(i, 1));
  worker->await("registry_down");
  worker->await_metric(up(0));
  await_in_readiness(*worker, "the schema registry is away");
  site.await_booked(15);  // what needs no question goes on
  EXPECT_EQ(site.database().value("SELECT count(*) FROM payments"), "15");

  knows(2);
  registry.come_back();
  worker->await("registry_up");
  worker->await_metric(up(1));
  site.await_no_lag();
  site.expect_exact(20);
  EXPECT_EQ(site.database().value("SELECT count(*) FROM hapax.attempts"), "0");
  EXPECT_EQ(worker->count("attempt_failed"), 0U);
  await_in_readiness(*worker, "the schema registry", false);
  expect_leaves(*worker);
}

TEST_F(RegistryOutage, OfOneSchemaHoldsNoOther) {
  for (const int schema : {1, 3}) knows(schema);
  registry.answer("/schemas/ids/2", 500, "");
  Producer producer(site.bootstrap());
  producer.send(payment(0, 2));
  for (int i = 1; i < 5; ++i) producer.send(payment(i, 1 + i % 2 * 2));
  const auto worker = this->worker();
  worker->await("schema_not_given", {{"schema", "/schemas/ids/2"}});
  site.await_booked(4);
  await_in_readiness(*worker, "does not give out /schemas/ids/2");
  EXPECT_EQ(worker->count("registry_down"), 0U);
  knows(2);
  site.await_no_lag();
  site.expect_exact(5);
  expect_leaves(*worker);
}

TEST_F(RegistryOutage, IsNoneIfABatchNamesUnknownSchemas) {
  for (const int schema : {1, 2}) knows(schema);
  Producer producer(site.bootstrap());
  for (int i = 0; i < 20; ++i) producer.produce(payment(i, 1 + i % 2));
  producer.flush();
  const auto worker = this->worker(20);
  site.await_no_lag();
  site.expect_exact(20);
  EXPECT_EQ(registry.questions("/schemas/ids/1"), 1);
  EXPECT_EQ(registry.questions("/schemas/ids/2"), 1);
  expect_leaves(*worker);
}

// A payload whose decoding takes the process with it, in each of its lives.
TEST_F(RegistryOutage, IsNoneIfDecodingKillsAndTheMessageIsGivenUp) {
  knows(1);
  Producer(site.bootstrap()).send(payment(0, 1));
  const auto worker =
      site.worker("w",
                  {{"kafka", {{"group.instance.id", "w"}}},
                   {"route",
                    {{"payload", {{"format", "avro"}, {"registry", {{"url", registry.url()}}}}},
                     {"retry", {{"max_crashes", 1}}}}}},
                  "message_decoded:1");
  int lives = 1;
  for (; worker->dies_before("dead_letter"); ++lives) {
    ASSERT_LT(lives, 6) << worker->output();
    worker->start_again("message_decoded:1");
  }
  EXPECT_EQ(site.database().value("SELECT reason, handler FROM hapax.dead_letters"),
            "crashed|scripted");
  site.await_no_lag();
  // Operators read the payload all the same, and a registry that is away hides nothing else.
  const std::string read = R"({"id":"p0","account":"a0","amount_minor":1})",
                    which = site.topic() + "/0/0";
  const auto shown = [&](std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"dead", "show", which});
    const Said said = hapax(more, worker->config());
    EXPECT_EQ(said.code, 0) << said.text;
    return said.text;
  };
  EXPECT_THAT(shown(), HasSubstr("\ndecoded      " + json(read).dump() + "\n"));
  const auto decoded = [&] {
    const std::string text = shown({"--json"});  // behind lines of the log
    return json::parse(text.substr(text.find('{'))).at("decoded");
  };
  EXPECT_EQ(decoded().at("json"), read);
  registry.go_away();
  EXPECT_THAT(shown(),
              AllOf(HasSubstr("\ndecoded      not: "), HasSubstr("\nreason       crashed\n")));
  EXPECT_THAT(decoded().at("error").get<std::string>(), HasSubstr("registry"));
  expect_leaves(*worker);
}

// The second message of its file, by a schema that has one more field each time.
class ProtobufRoute : public testing::Test {
 protected:
  void knows(int schema) {
    std::string fields = "string id = 1; string account = 2; int64 amount_minor = 3;";
    for (int i = 1; i < schema; ++i)
      fields += " string more" + std::to_string(i) + " = " + std::to_string(10 + i) + ";";
    registry.answer("/schemas/ids/" + std::to_string(schema), 200,
                    json{{"schemaType", "PROTOBUF"},
                         {"schema",
                          "syntax = \"proto3\"; package t; message Other {} message "
                          "Payment { " +
                              fields + " }"}}
                        .dump());
  }

  // As site.payment(), but with the id in the payload alone.
  Outgoing payment(int number, int schema) const {
    Outgoing record = site.payment(number);
    record.headers.clear();
    std::string bytes{'\0', '\0', '\0', '\0', static_cast<char>(schema), 2, 2};  // indexes: [1]
    const std::string id = "p" + std::to_string(number),
                      account = "a" + std::to_string(number % 10);
    bytes += '\x0a' + std::string(1, static_cast<char>(id.size())) + id;
    bytes += '\x12' + std::string(1, static_cast<char>(account.size())) + account;
    record.payload = bytes + '\x18' + static_cast<char>(number + 1);
    return record;
  }

  Site site = Site::on_mock_cluster(1);
  SchemaRegistry registry;
};

TEST_F(ProtobufRoute, TakesItsKeyFromTheDecodedValueAndWaitsForItsRegistry) {
  knows(1);
  const auto worker = site.worker(
      "w", {{"route",
             {{"payload", {{"format", "protobuf"}, {"registry", {{"url", registry.url()}}}}},
              {"key", {{"header", nullptr}, {"json", "/id"}}}}}});
  Producer producer(site.bootstrap());
  for (int i = 0; i < 5; ++i) producer.send(payment(i, 1));
  site.await_booked(5);

  registry.go_away();
  for (int i = 3; i < 10; ++i) producer.send(payment(i, 2));  // 3 and 4 again
  worker->await("registry_down");
  EXPECT_EQ(site.database().value("SELECT count(*) FROM payments"), "5");
  knows(2);
  registry.come_back();
  site.await_no_lag();
  site.expect_exact(10);
  EXPECT_EQ(worker->count("attempt_failed"), 0U);
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
