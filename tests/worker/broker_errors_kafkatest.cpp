// Brokers that answer for some partitions and not for others, or with errors of their own.
#include <gtest/gtest.h>

#include "support/command.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using Request = kafka::MockCluster::Request;
using Error = kafka::MockCluster::Error;

TEST(BrokerErrors, APartitionWithoutALeaderHoldsUpNoOther) {
  Site site = Site::on_mock_cluster(2);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 20);
  Site::mock_cluster().set_led(site.topic(), 0, false);
  const auto worker = site.worker("w");
  worker->await("start_delayed");
  worker->await("partition_started", {{"partition", 1}});
  Site::mock_cluster().set_led(site.topic(), 0, true);
  worker->await("partition_started", {{"partition", 0}});
  site.await_booked(20);
  expect_leaves(*worker);
  site.expect_exact(20);
}

TEST(BrokerErrors, AnErrorOfTheBrokersIsNoHaltAndPassesOverNothing) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 20);
  const auto worker = site.worker("w");
  site.await_booked(20);
  Site::mock_cluster().refuse(Request::fetch, Error::unknown);
  worker->await("kafka_error");
  site.pay(producer, 20, 20);
  site.await_booked(40);
  EXPECT_EQ(worker->count("halted"), 0U);
  expect_leaves(*worker);
}

TEST(BrokerErrors, WhatCannotBeReadHaltsThere) {
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap());
  site.pay(producer, 0, 20);
  const auto worker = site.worker("w");
  site.await_booked(20);
  Site::mock_cluster().refuse(Request::fetch, Error::corrupt_message);
  worker->await("halted", {{"reason", "unreadable"}, {"offset", 20}});
  expect_leaves(*worker);
}

// Delivered without its headers, it could run once more under another key.
TEST(BrokerErrors, AMessageWithMoreHeadersThanLibrdkafkaReadsHaltsAlone) {
  constexpr std::size_t kMost = 100'000;
  Site site = Site::on_mock_cluster(1);
  Producer producer(site.bootstrap(), {{"compression.codec", "lz4"}});
  Outgoing most = site.payment(0);
  most.headers.resize(kMost, {"h", ""});
  producer.send(most);
  const auto worker = site.worker("w");
  site.await_booked(1);
  Outgoing more = site.payment(1);
  more.headers.resize(kMost + 1, {"h", ""});
  producer.send(more);
  site.pay(producer, 2, 3);
  worker->await("halted", {{"reason", "unreadable"}, {"offset", 1}});
  site.await("SELECT count(*) FROM hapax.halts", "1");  // the log line comes before the row
  const Said said = hapax({"resume", site.topic(), "--decision", "skip", "--why", "looked at it",
                           "--yes", "--url", site.database().owner().url},
                          worker->config());
  EXPECT_EQ(said.code, 0) << said.text;
  site.await("SELECT string_agg(id, ' ' ORDER BY id) FROM payments", "p0 p2 p3 p4");
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
