// `hapax console` as an operator starts it, beside a worker and Kafka.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>

#include "gate/http_client.hpp"
#include "sandbox/child_process.hpp"
#include "sandbox/temporary_folder.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using nlohmann::json;

class ConsoleProcess {
 public:
  explicit ConsoleProcess(const std::filesystem::path& config)
      : process_({.argv = {HAPAX_BINARY_DIR "/bin/hapax", "console", "-c", config, "--listen",
                           "127.0.0.1:0"},
                  .output = folder_.path() / "log"}) {
    if (!process_.wait_for_line("ssh -L", std::chrono::seconds(60)))
      throw std::runtime_error(output());
    const std::string text = output();
    std::smatch found;
    if (!std::regex_search(text, found, std::regex("http://127.0.0.1:(\\d+)/#token=(\\w+)")))
      throw std::runtime_error(text);
    port_ = static_cast<std::uint16_t>(std::stoi(found[1]));
    token_ = found[2];
  }

  json get(const std::string& target) {
    const gate::Reply reply = ask(target);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return json::parse(reply.body);
  }

  std::optional<sandbox::Exit> stop() {
    process_.signal(SIGTERM);
    return process_.wait(std::chrono::seconds(60));
  }
  std::string output() const {
    std::ifstream log(folder_.path() / "log");
    return {std::istreambuf_iterator<char>(log), {}};
  }

 private:
  gate::Reply ask(const std::string& target) {
    gate::HttpClient client(port_);
    client.send("GET " + target + " HTTP/1.1\r\nHost: localhost\r\nX-Hapax-Token: " + token_ +
                "\r\n\r\n");
    return client.read();
  }

  sandbox::TemporaryFolder folder_{"console"};
  sandbox::ChildProcess process_;
  std::uint16_t port_ = 0;
  std::string token_;
};

json run(int from, int to, const char* verdict) {
  return {{"from", from}, {"to", to}, {"verdict", verdict}};
}

TEST(ConsoleCommand, ShowsTheGroupExplainsAMessageAndEndsAtSigterm) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 3);
  const auto worker = site.worker("w");
  site.await_no_lag();
  ConsoleProcess console(worker->config());
  json state = console.get("/api/overview").at("state");
  while (state.at("kafka_age_seconds").is_null()) state = console.get("/api/overview").at("state");
  EXPECT_EQ(state.at("kafka_error"), nullptr);
  const json& partition = state.at("partitions").at(0);
  EXPECT_EQ(partition.at("state"), "running");
  EXPECT_EQ(partition.at("owner"), "w");
  EXPECT_EQ(partition.at("lag"), 0);
  const json told = console.get("/api/explain?which=" + site.topic() + "/0/1");
  EXPECT_EQ(told.at("story").at("verdict"), "completed");
  const auto exit = console.stop();
  EXPECT_TRUE(exit && exit->success()) << console.output();
  expect_leaves(*worker);
}

// The sum of the runs is the stretch, so no offset is left without its verdict.
TEST(ConsoleCommand, AuditsAStretchOfAPartitionOffsetByOffset) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 3);
  site.pay(producer, 1, 1);  // again: a duplicate
  const auto worker = site.worker("w");
  site.await_no_lag();
  site.database().run("DELETE FROM hapax.idempotency_keys WHERE kafka_offset = 2");
  ConsoleProcess console(worker->config());
  const std::string view = "/api/audit?topic=" + site.topic() + "&partition=0";
  const json told = console.get(view);
  EXPECT_EQ(told.at("checkpoint"), 4);
  EXPECT_EQ(told.at("counts").at("unaccounted"), 1);
  EXPECT_EQ(told.at("runs"), json::array({run(0, 2, "completed"), run(2, 3, "unaccounted"),
                                          run(3, 4, "duplicate")}));
  EXPECT_EQ(told.at("unaccounted").at(0).at("offset"), 2);
  EXPECT_EQ(console.get(view + "&from=3").at("runs"), json::array({run(3, 4, "duplicate")}));
  const json behind = console.get(view + "&from=9");
  EXPECT_EQ(behind.at("from"), 4);
  EXPECT_EQ(behind.at("runs"), json::array());
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
