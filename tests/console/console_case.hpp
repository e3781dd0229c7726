// The base of the tests of the console: one on a port of its own, over a real PostgreSQL. What
// Kafka tells is up to the test.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "console/console.hpp"
#include "gate/http_client.hpp"
#include "support/database.hpp"

namespace hapax::console {

using Headers = std::vector<std::pair<std::string, std::string>>;
using gate::Reply;

class ConsoleCase : public testing::Test {
 protected:
  using Json = nlohmann::json;

  ConsoleCase() {
    setup.config.kafka.properties = {{"bootstrap.servers", "127.0.0.1:1"}, {"group.id", "g"}};
    setup.config.postgres.url = database.worker().url;
    config::Route& route = setup.config.routes.emplace_back();
    route.topic = "t";
    route.key.scope = "s";
    setup.config_path = "worker.json";
    setup.who = "ann";
    setup.ask_kafka = [](app::KafkaSide& side) { side.away = "no broker"; };
  }

  void as_operator() { setup.url = database.make_operator().url; }

  Console& console() {
    if (!console_) console_ = std::make_unique<Console>(setup);
    return *console_;
  }

  // What the page keeps of the printed URL.
  std::string token() {
    const std::string url = console().url(), before = "/#token=";
    return url.substr(url.find(before) + before.size());
  }
  std::string host() { return "127.0.0.1:" + std::to_string(console().port()); }

  Reply send(const std::string& request) {
    gate::HttpClient client(static_cast<std::uint16_t>(console().port()));
    client.send(request);
    return client.read();
  }
  Reply ask(const std::string& method, const std::string& target, const Headers& headers,
            const std::string& body = {}) {
    std::string text = method + " " + target + " HTTP/1.1\r\n";
    for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
    if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return send(text + "\r\n" + body);
  }

  // As the page asks, with its token.
  Headers own(Headers more = {}) {
    Headers headers = {{"Host", host()}, {"X-Hapax-Token", token()}};
    headers.insert(headers.end(), more.begin(), more.end());
    return headers;
  }
  Reply get(const std::string& target) {
    return ask("GET", target, own({{"Sec-Fetch-Site", "same-origin"}}));
  }
  Json read(const std::string& target) {
    const Reply reply = get(target);
    EXPECT_EQ(reply.status, 200) << target << ": " << reply.body;
    return Json::parse(reply.body);
  }
  Reply post(const std::string& target, const Json& order) {
    return ask("POST", target,
               own({{"Sec-Fetch-Site", "same-origin"}, {"Content-Type", "application/json"}}),
               order.dump());
  }
  // An order of ann's. `status`: what it is answered.
  Json give(const std::string& target, Json order, int status = 200) {
    order.update({{"who", "ann"}, {"why", "fixed"}});
    const Reply reply = post(target, order);
    EXPECT_EQ(reply.status, status) << target << ": " << reply.body;
    return Json::parse(reply.body);
  }

  // Letter n is of t/0/n, with key k<n>; even ones are rejected, odd ones have no key.
  void letters(int count, const std::string& payload = "'{}'") {
    database.run(
        "INSERT INTO hapax.dead_letters (group_id, topic, generation, partition, kafka_offset,"
        " timestamp_type, header_names, header_values, reason, error, attempts, handler,"
        " handler_version, scope, key, first_at, payload) SELECT 'g', 't', 1, 0, n, 'none', '{}', "
        "'{}', CASE WHEN n % 2 = 0 THEN 'rejected' ELSE 'missing_key' END, 'error ' || n, 1, 'h', "
        "'1', 's', 'k' || n, now(), " +
        payload + " FROM generate_series(1, " + std::to_string(count) + ") n");
  }
  void halt(const std::string& reason, const std::string& offset = "NULL", int partition = 0) {
    database.run(
        "INSERT INTO hapax.halts (group_id, topic, partition, whole_route, generation, "
        "kafka_offset, reason, detail, halted_by) VALUES ('g', 't', " +
        std::to_string(partition) + ", false, 1, " + offset + ", '" + reason + "', 'a test', 'w')");
  }
  std::string log() {
    return database.value("SELECT who, action, why FROM hapax.operator_log ORDER BY id");
  }

  test::Database database;
  ConsoleSetup setup;

 private:
  std::unique_ptr<Console> console_;
};

}  // namespace hapax::console
