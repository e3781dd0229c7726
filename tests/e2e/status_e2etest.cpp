// What `hapax status` needs a real broker for: the group's members, and open transactions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sandbox/temporary_folder.hpp"
#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using testing::HasSubstr;

nlohmann::json status_of(const WorkerProcess& worker, int code) {
  const Said said = hapax({"status", "--json"}, worker.config());
  EXPECT_EQ(said.code, code) << said.text;
  return nlohmann::json::parse(said.text);
}

TEST(Status, ShowsTheBacklogBehindAnOpenTransaction) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer plain(site.bootstrap());
  plain.send(site.payment(0));
  const auto worker = site.worker("w");
  site.await_no_lag();
  Producer open(site.bootstrap(), {{"transactional.id", site.topic()}});
  open.begin();
  open.produce(site.payment(1));
  open.flush();
  plain.send(site.payment(2));
  const nlohmann::json row = status_of(*worker, 0).at("partitions")[0];
  EXPECT_EQ(row.at("end"), 3);
  EXPECT_EQ(row.at("lag"), 2);
  EXPECT_EQ(row.at("open_transaction_at"), 1);
  EXPECT_THAT(hapax({"status"}, worker->config()).text,
              HasSubstr("/0: a producer's transaction is open since offset 1"));
  open.commit();
  site.await_booked(3);
  site.await_no_lag();
  EXPECT_EQ(status_of(*worker, 0).at("partitions")[0].at("open_transaction_at"), nullptr);
  expect_leaves(*worker);
}

TEST(Status, ExitsWith1WhileARoutesTopicCannotBeRead) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  const sandbox::TemporaryFolder folder("status");
  const auto config = folder.path() / "worker.json";
  WorkerOptions options = site.options("w");
  options.config["routes"].push_back(options.config["routes"][0]);
  options.config["routes"][1]["topic"] = "no-such-topic";
  std::ofstream(config) << options.config;
  const Said said = hapax({"status"}, config);
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, HasSubstr("topic no-such-topic of a route cannot be read: it does not"));
  EXPECT_THAT(said.text, HasSubstr(site.topic()));
}

TEST(Status, TellsThatAnOwnerThatWasKilledIsGone) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer producer(site.bootstrap());
  producer.send(site.payment(0));
  const auto worker = site.worker("w");
  site.await_no_lag();
  const nlohmann::json well = status_of(*worker, 0);
  EXPECT_EQ(well.at("members"), 1);
  EXPECT_EQ(well.at("partitions")[0].at("state"), "running");
  worker->kill();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  Said said;
  while ((said = hapax({"status"}, worker->config())).code == 0 &&
         std::chrono::steady_clock::now() < until) {
  }
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, HasSubstr("Empty, members: 0"));
  EXPECT_THAT(said.text, HasSubstr("owner is gone"));
}

}  // namespace
}  // namespace hapax::support
