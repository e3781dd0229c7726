// Messages that a real broker can hold, and a worker must handle. Each is booked, or kept byte for
// byte as a dead letter. The group's lag ends at 0.
#include <gtest/gtest.h>

#include "support/read_records.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using namespace std::string_literals;

constexpr std::size_t kLarge = 900'000;

std::string hex(const std::optional<std::string>& bytes) {
  if (!bytes) return "null";
  std::string text;
  for (const char c : *bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

// A record as kLetters gives a dead letter.
std::string text_of(const Incoming& record) {
  std::string names, values;
  for (const auto& [name, value] : record.headers) {
    names += (names.empty() ? "" : ",") + hex(name);
    values += (values.empty() ? "" : ",") + hex(value);
  }
  return std::to_string(record.offset) + '|' + std::to_string(record.timestamp_ms) + '|' +
         hex(record.key) + '|' + hex(record.payload) + '|' + names + '|' + values;
}

constexpr const char* kLetters = R"(
  SELECT kafka_offset, message_timestamp, encode(message_key, 'hex'), encode(payload, 'hex'),
         array_to_string(ARRAY(SELECT encode(n, 'hex') FROM unnest(header_names) n), ',', 'null'),
         array_to_string(ARRAY(SELECT encode(v, 'hex') FROM unnest(header_values) v), ',', 'null')
  FROM hapax.dead_letters WHERE kafka_offset = )";

// Sends good and bad records to one partition and compares what became of them.
class BadInput : public testing::Test {
 protected:
  void good(Outgoing record) { send(std::move(record)); }
  void bad(Outgoing record) {
    send(std::move(record));
    bad_.push_back(sent_ - 1);
  }

  Outgoing payment(int number) const { return site_->payment(number); }
  Outgoing with_headers(decltype(Outgoing::headers) headers) const {
    Outgoing record = site_->payment(0);
    record.headers = std::move(headers);
    return record;
  }

  void SetUp() override {
    HAPAX_NEEDS_KAFKA();
    site_ =
        std::make_unique<Site>(1, std::map<std::string, std::string>{
                                      {"message.timestamp.after.max.ms", "9223372036854775807"}});
    producer_ = std::make_unique<Producer>(site_->bootstrap());
  }

  // Runs a worker to the end of the topic.
  void work(const nlohmann::json& patch = {}) {
    producer_->flush();
    const auto worker = site_->worker("w", patch);
    site_->await_no_lag();
    expect_leaves(*worker);
    EXPECT_EQ(site_->database().count("SELECT count(*) FROM payments"),
              sent_ - static_cast<int>(bad_.size()));
    EXPECT_EQ(site_->database().count("SELECT count(*) FROM hapax.dead_letters"),
              static_cast<int>(bad_.size()))
        << site_->database().value("SELECT kafka_offset, reason FROM hapax.dead_letters");
    const auto records = read_records(site_->bootstrap(), site_->topic(), 0);
    ASSERT_EQ(records.size(), static_cast<std::size_t>(sent_));
    for (const int offset : bad_)
      EXPECT_EQ(site_->database().value(kLetters + std::to_string(offset)),
                text_of(records[static_cast<std::size_t>(offset)]));
  }

  std::string reason(int offset) {
    return site_->database().value("SELECT reason FROM hapax.dead_letters WHERE kafka_offset = " +
                                   std::to_string(offset));
  }

  std::unique_ptr<Site> site_;
  std::unique_ptr<Producer> producer_;
  std::vector<int> bad_;  // offsets
  int sent_ = 0;

 private:
  void send(Outgoing record) {
    record.partition = 0;
    producer_->produce(record);
    ++sent_;
  }
};

TEST_F(BadInput, PayloadsAndKeysOfAllKinds) {
  Outgoing record = payment(1);
  record.payload = "";
  bad(record);
  record.payload = std::nullopt;  // a tombstone
  bad(record);
  record.payload = "\0\xff not json"s;
  bad(record);
  record.payload = std::string(kLarge, '\xfe');
  bad(record);
  record.payload = std::string(100'000, '[');
  bad(record);
  record = payment(2);
  record.key = std::nullopt;
  good(record);
  record = payment(3);
  record.key = "\0\xff\xfe"s;
  good(record);
  record = site_->payment(4, {{"padding", std::string(kLarge, 'x')}});
  good(record);
  record = payment(5);
  record.key = "";
  good(record);
  work();
}

TEST_F(BadInput, HeadersOfAllKinds) {
  const std::string name = "idempotency-key";
  bad(with_headers({}));
  bad(with_headers({{name, std::nullopt}}));
  bad(with_headers({{name, ""}}));
  bad(with_headers({{name, "one"}, {name, "other"}}));
  bad(with_headers({{"x\xff", "\0\x80"s}, {"", ""}, {"y", std::nullopt}}));
  good(with_headers({{name, "same"}, {name, "same"}}));
  good(with_headers({{"IDEMPOTENCY-Key", "case"}}));
  good(with_headers({{name, "\xff\xfe"}, {"z\xff", "\0"s}}));
  good(with_headers({{name, "\xff\xfd"}}));
  good(with_headers({{name, "a\0b"s}}));
  good(with_headers({{name, "a\0c"s}}));
  good(with_headers({{name, std::string(10'000, 'k')}}));
  work();
  EXPECT_EQ(reason(0), "missing_key");
  EXPECT_EQ(reason(1), "missing_key");
  EXPECT_EQ(reason(2), "missing_key");
  EXPECT_EQ(reason(3), "ambiguous_key");
}

TEST_F(BadInput, DeepAndBrokenJsonIfTheKeyIsInIt) {
  Outgoing record = payment(1);
  record.payload = std::string(100'000, '[') + std::string(100'000, ']');
  bad(record);
  record.payload = R"({"id": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  bad(record);
  record.payload = R"({"id": "p1")";
  bad(record);
  good(payment(2));
  work({{"route", {{"key", {{{"json", "/id"}}}}}}});
  for (const int offset : bad_) EXPECT_EQ(reason(offset), "not_json") << offset;
}

TEST_F(BadInput, TimestampsOutOfTheOrdinary) {
  for (const std::int64_t timestamp : {std::int64_t{-1}, std::int64_t{1}, std::int64_t{1} << 53,
                                       std::numeric_limits<std::int64_t>::max() - 1}) {
    Outgoing record = payment(sent_);
    record.timestamp_ms = timestamp;
    good(record);
    record = payment(sent_);
    record.payload = "no payment";
    record.timestamp_ms = timestamp;
    bad(record);
  }
  work();
}

TEST_F(BadInput, EveryCodec) {
  constexpr int kEach = 50;
  for (const char* const codec : {"none", "gzip", "snappy", "lz4", "zstd"}) {
    producer_ = std::make_unique<Producer>(
        site_->bootstrap(),
        std::map<std::string, std::string>{{"compression.codec", codec}, {"linger.ms", "20"}});
    for (int i = 0; i < kEach; ++i) good(payment(sent_));
    producer_->flush();
  }
  work();
}

TEST(Transactions, AbortedOnesAreNotBookedAndTheLagEndsAt0BehindControlRecords) {
  HAPAX_NEEDS_KAFKA();
  Site site(2);
  Producer producer(site.bootstrap(), {{"transactional.id", site.topic()}});
  const auto worker = site.worker("w");
  producer.begin();
  site.pay(producer, 0, 40);
  producer.commit();
  producer.begin();
  site.pay(producer, 1'000, 40);
  producer.abort();
  site.await_no_lag();  // the last is a control record
  producer.begin();
  site.pay(producer, 40, 2);
  producer.commit();
  producer.begin();
  site.pay(producer, 2'000, 2);
  producer.abort();
  site.await_no_lag();
  site.expect_exact(42);
  expect_leaves(*worker);
}

// Kafka gives out nothing behind it, of whomever; that is a lag, and not its end.
TEST(Transactions, AnOpenOneIsALagUntilItEnds) {
  HAPAX_NEEDS_KAFKA();
  Site site(1);
  Producer plain(site.bootstrap()), hanging(site.bootstrap(), {{"transactional.id", site.topic()}});
  site.pay(plain, 0, 3);
  const auto worker = site.worker("w");
  const auto lag = [&](int behind) {
    worker->await_metric("hapax_partition_lag{partition=\"0\",topic=\"" + site.topic() + "\"} " +
                         std::to_string(behind));
  };
  lag(0);
  hanging.begin();
  site.pay(hanging, 1'000, 2);
  site.pay(plain, 3, 1);
  lag(3);
  hanging.abort();
  lag(0);
  site.expect_exact(4);
  expect_leaves(*worker);
}

}  // namespace
}  // namespace hapax::support
