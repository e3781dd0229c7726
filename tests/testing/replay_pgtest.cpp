// Recorded messages under the test kit: replayed, and through two versions of a handler.
#include <gmock/gmock.h>

#include <fstream>

#include "kit_case.hpp"
#include "sandbox/temporary_folder.hpp"
#include "support/recorded_line.hpp"

namespace kit {
namespace {

using hapax::testing::plugin_handler;
using hapax::testing::read_records;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

std::vector<Record> payments_at(int first, int last, const std::string& amount = "10") {
  std::vector<Record> records;
  for (int i = first; i <= last; ++i) {
    records.push_back(payment("p" + std::to_string(i), amount));
    records.back().offset = i;
  }
  return records;
}

// What two handlers do differently with 250 payments, of which number 120 is of 7.
std::vector<std::string> differences_of(const Body& one, const Body& other) {
  Harness now(factory(one), ledger()), next(factory(other), ledger());
  std::vector<Record> records = payments_at(0, 249);
  records[120].payload = "7";
  return now.compare(next, records);
}

TEST(ReplayOfRecords, TellsWhatBecomesOfEachRecord) {
  Harness harness(factory(book), ledger());
  const auto outcomes = harness.replay({payment("a"), payment("b", "no number"), payment("a")});
  ASSERT_THAT(outcomes, SizeIs(3));
  EXPECT_EQ(outcomes[0].result, Result::completed);
  EXPECT_EQ(outcomes[1].result, Result::failed);
  EXPECT_EQ(outcomes[2].result, Result::duplicate);
}

TEST(Shadow, OfTheSameHandlerShowsNothing) { EXPECT_THAT(differences_of(book, book), IsEmpty()); }

TEST(Shadow, ShowsTheMessageAtWhichTheTablesBecomeDifferent) {
  const auto told = differences_of(book, [](const Message& message, Context& context) {
    const bool seven = message.payload() == "7";
    context.sql("INSERT INTO payments VALUES ($1, $2)", *message.header("id"),
                seven ? "8" : *message.payload());
    context.write(
        "WITH e AS (INSERT INTO entries (id) VALUES ($1) RETURNING number) "
        "INSERT INTO notes SELECT number, 'booked' FROM e",
        *message.header("id"));
  });
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0], HasSubstr("between partition 0, offset 120, and partition 0, offset 122"));
  EXPECT_THAT(told[0], HasSubstr("public.payments.amount is 8, not 7"));
}

TEST(Shadow, ShowsAnotherEnd) {
  const auto told = differences_of(book, [](const Message& message, Context& context) {
    if (message.payload() == "7") throw hapax::Reject("sevens are unlucky");
    book(message, context);
  });
  ASSERT_THAT(told, SizeIs(5));  // and the key, and three tables
  EXPECT_THAT(told[0], HasSubstr("partition 0, offset 120: it is completed, and with the other "
                                 "handler failed (rejected: sevens are unlucky"));
}

TEST(Shadow, ShowsWhatIsNotPublishedAnyMore) {
  Options options = ledger();
  options.publish_topics = {"receipts"};
  Harness now(factory([](const Message& message, Context& context) {
                book(message, context);
                context.publish("receipts", {.payload = std::string(*message.header("id"))});
              }),
              options);
  Harness next(factory(book), options);
  const auto told = now.compare(next, payments_at(0, 2));
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(
      told[0],
      HasSubstr("after partition 0, offset 0: with the other handler hapax.outbox has 1 row"));
}

TEST(Shadow, TakesTheOtherHandlerFromAPlugin) {
  const std::string plugin = HAPAX_BINARY_DIR "/lib/libother_json.so";
  EXPECT_EQ(plugin_handler(plugin, "echo").name, "echo");
  EXPECT_THAT([&] { plugin_handler(plugin, "ech"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("has no handler ech; it has echo")));
}

class RecordsInAFile : public ::testing::Test {
 protected:
  std::string write(const std::string& text) const {
    std::ofstream(file_) << text;
    return file_;
  }
  static std::string line(const std::string& topic, const std::string& payload) {
    return R"({"topic": ")" + topic + R"(", "partition": 3, "kafka_offset": 9, "headers": [],)" +
           R"("message_timestamp": null, "message_key": null, "payload": )" + payload + "}\n";
  }

  const hapax::sandbox::TemporaryFolder folder_{"records"};
  const std::string file_ = folder_.path() / "messages.jsonl";
};

TEST_F(RecordsInAFile, AreWhatHapaxRecordWrote) {
  const auto records =
      read_records(write("{\"topic\":\"t" + std::string(hapax::support::kRecordedLine) + "\n"));
  ASSERT_THAT(records, SizeIs(1));
  const std::string bytes("\xff\0\x01", 3);
  EXPECT_EQ(records[0], (Record{.payload = bytes,
                                .headers = {{"id", "p1"}, {"raw", bytes}, {"none", std::nullopt}},
                                .key = "k",
                                .timestamp_ms = 1'700'000'000'123,
                                .partition = 1,
                                .offset = 0}));
}

// A handler that goes by the broker's time decides the same in a replay.
TEST_F(RecordsInAFile, KeepWhoWroteTheirTimestamp) {
  nlohmann::json record = nlohmann::json::parse(line("t", R"({"text": "10"})"));
  record["headers"] = {{{"name", {{"text", "id"}}}, {"value", {{"text", "p1"}}}}};
  record["message_timestamp"] = 1'700'000'000'123;
  record["timestamp_type"] = "log_append_time";
  Harness harness(factory([](const Message& message, Context& context) {
                    if (message.timestamp_type() != hapax::TimestampType::log_append_time)
                      throw hapax::Reject("the producer's time");
                    book(message, context);
                  }),
                  ledger());
  const auto outcomes = harness.replay(read_records(write(record.dump())));
  ASSERT_THAT(outcomes, SizeIs(1));
  EXPECT_EQ(outcomes[0].result, Result::completed) << outcomes[0].text();
}

TEST_F(RecordsInAFile, MayBeTombstones) {
  EXPECT_THAT(read_records(write(line("t", "null"))),
              ElementsAre(::testing::Field(&Record::payload, std::nullopt)));
}

// As `hapax dead export` writes one whose message was too large: without its payload.
TEST_F(RecordsInAFile, AreNoTombstonesIfTheirBytesWereNotKept) {
  const auto letter = [](const std::string& other) {
    const std::string record = line("t", "null");
    return record.substr(0, record.size() - 2) + ", \"other\": " + other + "}\n";
  };
  write(letter("null") + letter(R"({"trace_id": "a"})"));
  EXPECT_THAT(read_records(file_), SizeIs(2));
  write(letter("null") + letter(R"({"bytes_kept": false})"));
  EXPECT_THAT([&] { read_records(file_); },
              ThrowsMessage<std::runtime_error>(
                  ::testing::AllOf(HasSubstr("line 2: "), HasSubstr("does not hold its message"))));
}

// `hapax dead export` writes the newest first, and a worker reads each partition by its offsets.
TEST_F(RecordsInAFile, ComeByPartitionAndOffset) {
  std::string text;
  for (const auto& [partition, offset] : {std::pair(1, 7), {0, 12}, {1, 5}, {0, 3}}) {
    nlohmann::json record = nlohmann::json::parse(line("t", "null"));
    record["partition"] = partition;
    record["kafka_offset"] = offset;
    text += record.dump() + "\n";
  }
  std::vector<std::pair<std::int32_t, std::int64_t>> places;
  for (const Record& record : read_records(write(text)))
    places.emplace_back(record.partition, record.offset.value());
  EXPECT_THAT(places,
              ElementsAre(std::pair(0, 3), std::pair(0, 12), std::pair(1, 5), std::pair(1, 7)));
}

TEST_F(RecordsInAFile, AreOfOneTopic) {
  write(line("a", R"({"text": "1"})") + line("b", R"({"text": "2"})"));
  EXPECT_THAT(read_records(file_, "b"), ElementsAre(::testing::Field(&Record::payload, "2")));
  EXPECT_THAT([&] { read_records(file_); },
              ThrowsMessage<std::runtime_error>(HasSubstr("several topics: name one of a, b")));
  EXPECT_THAT([&] { read_records(file_, "c"); },
              ThrowsMessage<std::runtime_error>(HasSubstr("no record of topic c, but of a, b")));
}

// Else a record of the new log would pass for a redelivery of the old one's.
TEST_F(RecordsInAFile, AreOfOneGeneration) {
  const auto letter = [](int generation, const std::string& payload) {
    nlohmann::json record = nlohmann::json::parse(line("t", R"({"text": ")" + payload + "\"}"));
    record["generation"] = generation;
    return record.dump() + "\n";
  };
  EXPECT_THAT(read_records(write(letter(2, "1") + letter(2, "1") + line("t", "null"))), SizeIs(3));
  write(letter(2, "1") + letter(1, "2"));
  EXPECT_THAT([&] { read_records(file_); },
              ThrowsMessage<std::runtime_error>(HasSubstr("letters of generations 1 to 2")));
}

TEST_F(RecordsInAFile, AreRefusedWithTheLineThatIsWrong) {
  write(line("t", "null") + R"({"topic": "t"})");
  EXPECT_THAT([&] { read_records(file_); },
              ThrowsMessage<std::runtime_error>(HasSubstr("messages.jsonl, line 2: no record of")));
  write(line("t", R"({"base64": "A"})"));
  EXPECT_THAT([&] { read_records(file_); },
              ThrowsMessage<std::runtime_error>(HasSubstr("its base64 is wrong")));
}

}  // namespace
}  // namespace kit
