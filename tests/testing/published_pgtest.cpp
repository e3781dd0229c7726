// What a handler publishes, under the test kit: it is shown, and a redelivery publishes nothing
// new.
#include <gmock/gmock.h>

#include <set>

#include "kit_case.hpp"

namespace kit {
namespace {

using hapax::testing::CrashPoint;
using hapax::testing::Fault;
using hapax::testing::NotExactlyOnce;
using hapax::testing::Published;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Options publishing() {
  Options options = ledger();
  options.publish_topics = {"receipts", "audit"};
  return options;
}

void publish(const Message& message, Context& context) {
  context.publish("receipts", {.key = std::string(*message.header("id")),
                               .payload = std::string("\xff\0 paid", 7),
                               .headers = {{"kind", "receipt"}, {"none", std::nullopt}},
                               .name = "receipt"});
  context.publish("audit", {.payload = std::nullopt});
}

void book_and_publish(const Message& message, Context& context) {
  book(message, context);
  publish(message, context);
}

std::string verdict_on(const Body& body) {
  Harness harness(factory(body), publishing());
  try {
    harness.expect_exactly_once(payment());
  } catch (const NotExactlyOnce& error) {
    return error.what();
  }
  return "";
}

TEST(PublishedRecords, AreShownWholeAndInTheirOrder) {
  Harness harness(factory(book_and_publish), publishing());
  EXPECT_THAT(harness.published(), IsEmpty());
  ASSERT_EQ(harness.deliver(payment()).result, Result::completed);
  const std::vector<Published> all = harness.published();
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].topic, "receipts");
  EXPECT_EQ(all[0].key, "p1");
  EXPECT_EQ(all[0].payload, std::string("\xff\0 paid", 7));
  using Headers = std::vector<std::pair<std::string, std::optional<std::string>>>;
  EXPECT_EQ(all[0].headers, (Headers{{"kind", "receipt"}, {"none", std::nullopt}}));
  EXPECT_EQ(all[1].topic, "audit");
  EXPECT_EQ(all[1].key, std::nullopt);
  EXPECT_EQ(all[1].payload, std::nullopt);
  EXPECT_THAT(all[1].idempotency_key, SizeIs(64));
  EXPECT_NE(all[0].idempotency_key, all[1].idempotency_key);
}

TEST(PublishedRecords, AreNoMoreAfterARedelivery) {
  Harness harness(factory(book_and_publish), publishing());
  harness.crash_at(CrashPoint::handled, payment());
  EXPECT_THAT(harness.published(), IsEmpty());
  EXPECT_EQ(harness.attempt(payment(), Fault{"40001", Fault::kAtCommit}).result, Result::waiting);
  EXPECT_THAT(harness.published(), IsEmpty());
  harness.deliver(payment());
  const std::vector<Published> once = harness.published();
  EXPECT_THAT(once, SizeIs(2));
  EXPECT_EQ(harness.deliver(payment()).result, Result::duplicate);
  harness.restart();
  EXPECT_EQ(harness.resend(payment()).result, Result::duplicate);
  EXPECT_EQ(harness.published(), once);
  harness.deliver(payment("p2"));
  EXPECT_THAT(harness.published(), SizeIs(4));
}

TEST(PublishedRecords, AreComparedInEveryWay) {
  Harness harness(factory(book_and_publish), publishing());
  const Report report = harness.examine(payment());
  EXPECT_TRUE(report.passed()) << report;
  EXPECT_THAT(report.effects,
              ElementsAre("hapax.outbox", "public.entries", "public.notes", "public.payments"));
  EXPECT_THAT(harness.published(), SizeIs(2));
}

TEST(PublishedRecords, AreAnEffectOfTheirOwn) {
  EXPECT_EQ(verdict_on(publish), "");
  EXPECT_THAT(verdict_on([](const Message&, Context&) {}), HasSubstr("publishes nothing"));
}

// The kit must see it in the outbox: the tables are as they should be.
TEST(PublishedRecords, OfAHandlerThatRemembersWhatItHasPublishedAreMissed) {
  static std::set<std::string> done;
  done.clear();
  EXPECT_THAT(verdict_on([](const Message& message, Context& context) {
                book(message, context);
                if (done.insert(std::string(*message.header("id"))).second)
                  publish(message, context);
              }),
              AllOf(HasSubstr("hapax.outbox has 2 rows missing"),
                    HasSubstr("WRONG   PostgreSQL answers 40P01 to COMMIT")));
}

TEST(PublishedRecords, NeedATopicThatTheConfigurationNames) {
  Harness harness(factory([](const Message&, Context& context) {
                    context.publish("nowhere", {.payload = "x"});
                  }),
                  publishing());
  EXPECT_THAT(harness.attempt(payment()).detail,
              HasSubstr("the topic nowhere is not in publish.topics"));
}

}  // namespace
}  // namespace kit
