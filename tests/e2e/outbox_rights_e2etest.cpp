// publish.transactions while rights are taken away and given back: the topic halts or waits with a
// clear sentence, and no other does. Nothing is lost or doubled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "support/kafka_admin.hpp"
#include "support/kafka_rights.hpp"
#include "support/read_records.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::ElementsAre;

struct RightsCase {
  const char* name;
  Resource of;
  Operation operation;
  // Whether a relay needs it for each batch, or only at a take-over.
  bool always;
  bool halts = false;  // the topic, with or without a batch in doubt. Else it waits
};

void PrintTo(const RightsCase& one, std::ostream* out) { *out << one.name; }

const KafkaServer& kafka_with_rights() {
  static const KafkaServer kafka(
      {{"authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"},
       {"allow.everyone.if.no.acl.found", "true"},
       {"group.min.session.timeout.ms", "1000"}});
  return kafka;
}

// A worker that publishes with transactions to two topics of one partition each.
class TransactedRights : public testing::TestWithParam<RightsCase> {
 protected:
  void SetUp() override {
    HAPAX_NEEDS_KAFKA();
    bootstrap_ = kafka_with_rights().bootstrap();
    site_ = std::make_unique<Site>(1);
    a_ = site_->topic() + ".a";
    b_ = site_->topic() + ".b";
    for (const std::string& topic : {a_, b_, site_->topic()}) create_topic(bootstrap_, topic, 1);
    const std::string marker = "hapax-outbox/" + site_->group() + "/" + a_;
    right_ = {GetParam().of, GetParam().of == Resource::topic ? a_ : marker, GetParam().operation};
  }
  std::unique_ptr<WorkerProcess> worker(const std::string& crash_at = {}) const {
    return site_->worker("w",
                         {{"kafka", {{"bootstrap.servers", bootstrap_}}},
                          {"publish", {{"topics", {a_, b_}}, {"transactions", true}}},
                          {"route", {{"handler", "publishing"}}}},
                         crash_at);
  }
  // Publishes the number to each of these topics.
  void pay(int number, const std::vector<std::string>& topics) const {
    json records = json::array();
    for (const std::string& topic : topics)
      records.push_back({{"topic", topic}, {"value", std::to_string(number)}});
    Producer(bootstrap_).send(site_->payment(number, {{"publish", records}}));
  }
  void await_left(const std::string& of, const std::string& values) const {
    site_->await(
        "SELECT coalesce(string_agg(convert_from(payload, 'UTF8'), ' ' ORDER BY id), '') "
        "FROM hapax.outbox WHERE topic = '" +
            of + "'",
        values);
  }
  std::vector<std::string> values(const std::string& topic) const {
    std::vector<std::string> values;
    for (const Incoming& record : read_records(bootstrap_, topic, 0))
      values.push_back(*record.payload);
    return values;
  }
  std::string halts() const {
    return site_->database().value(
        "SELECT string_agg(concat_ws(' ', topic, row_id, reason, detail), '; ') FROM "
        "hapax.outbox_halts WHERE ended_at IS NULL");
  }
  // Waits until the halt or the log names the missing right.
  void await_told(const WorkerProcess& worker) const {
    for (const auto until = std::chrono::steady_clock::now() + 60s;
         std::chrono::steady_clock::now() < until; std::this_thread::sleep_for(50ms)) {
      if (halts().find("authorization failed") != std::string::npos) return;
      std::istringstream lines(worker.output());
      for (std::string line; std::getline(lines, line) && !GetParam().halts;)
        if ((line.find("outbox_delayed") != std::string::npos ||
             line.find("outbox_hanging") != std::string::npos) &&
            line.find(a_) != std::string::npos &&
            line.find("authorization failed") != std::string::npos)
          return;
    }
    FAIL() << "nothing names the right: " << halts() << "\n" << worker.output();
  }
  // A topic that waits goes on by itself.
  void expect_state() const {
    EXPECT_EQ(halts().starts_with(a_ + " topic_refused"), GetParam().halts) << halts();
  }
  // As an operator does. Without a halt there is nothing to decide.
  void retry() const {
    site_->database().run(
        "UPDATE hapax.outbox_halts SET ended_at = now(), decision = 'retry' WHERE ended_at IS "
        "NULL");
  }

  std::string bootstrap_, a_, b_;
  std::unique_ptr<Site> site_;
  Right right_{};
};

TEST_P(TransactedRights, TakenFromARunningRelayStopOneTopicUntilTheyAreBack) {
  const auto worker = this->worker();
  pay(0, {a_, b_});
  site_->await_booked(1);
  await_left(a_, "");
  take_away(bootstrap_, right_);
  pay(1, {a_, b_});
  site_->await_booked(2);
  pay(2, {a_, b_});
  if (!GetParam().always) {
    await_left(a_, "");
    return expect_leaves(*worker);
  }
  await_told(*worker);
  expect_state();
  await_left(b_, "");
  await_left(a_, "1 2");
  EXPECT_THAT(values(b_), ElementsAre("0", "1", "2"));
  give_back(bootstrap_, right_);
  retry();
  await_left(a_, "");
  EXPECT_THAT(values(a_), ElementsAre("0", "1", "2"));
  expect_leaves(*worker);
}

class TransactedRightsInDoubt : public TransactedRights {};

// The relay has died with a batch of which it is not known whether Kafka has it.
TEST_P(TransactedRightsInDoubt, MissingStopOneTopicUntilTheyAreBack) {
  const auto worker = this->worker("outbox_batch_committed:1");
  pay(0, {a_});
  EXPECT_EQ(worker->ended().signal, SIGKILL);
  // A worker starts only if it sees its topics. So it has all rights then, and not yet the lease.
  site_->database().run(
      "UPDATE hapax.leases SET holder = 'another', until = now() + interval '1 hour'");
  worker->start_again();
  pay(1, {a_, b_});
  site_->await_booked(2);
  take_away(bootstrap_, right_);
  site_->end_leases();
  await_told(*worker);
  expect_state();
  await_left(b_, "");
  give_back(bootstrap_, right_);
  retry();
  await_left(a_, "");
  EXPECT_THAT(values(a_), ElementsAre("0", "1"));
  EXPECT_THAT(values(b_), ElementsAre("1"));
  expect_leaves(*worker);
}

INSTANTIATE_TEST_SUITE_P(
    Each, TransactedRights,
    testing::Values(RightsCase{"TopicWrite", Resource::topic, Operation::write, true, true},
                    RightsCase{"TopicRead", Resource::topic, Operation::read, true},
                    RightsCase{"TopicDescribe", Resource::topic, Operation::describe, true},
                    RightsCase{"IdWrite", Resource::transactional_id, Operation::write, true},
                    RightsCase{"IdDescribe", Resource::transactional_id, Operation::describe,
                               false},
                    RightsCase{"MarkerRead", Resource::group, Operation::read, true},
                    RightsCase{"MarkerDescribe", Resource::group, Operation::describe, false}),
    [](const auto& test) { return std::string(test.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Each, TransactedRightsInDoubt,
    testing::Values(RightsCase{"TopicWrite", Resource::topic, Operation::write, true, true},
                    RightsCase{"TopicRead", Resource::topic, Operation::read, true},
                    RightsCase{"TopicDescribe", Resource::topic, Operation::describe, true},
                    RightsCase{"IdWrite", Resource::transactional_id, Operation::write, true},
                    RightsCase{"IdDescribe", Resource::transactional_id, Operation::describe, true},
                    RightsCase{"MarkerRead", Resource::group, Operation::read, true},
                    RightsCase{"MarkerDescribe", Resource::group, Operation::describe, true}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace hapax::support
