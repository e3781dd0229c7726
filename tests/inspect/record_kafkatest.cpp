// Messages that `hapax record` writes, as the test kit reads them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "sandbox/temporary_folder.hpp"
#include "support/command.hpp"
#include "support/recorded_line.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Recorded : public testing::Test {
 protected:
  Recorded() : site_(Site::on_mock_cluster(2)), producer_(site_.bootstrap()) {
    std::ofstream(config_) << site_.options("w").config;
  }

  Said record(const std::string& place, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"record", place};
    if (more.empty() || more[0] != "--out") more.insert(more.end(), {"--out", file_});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return hapax(arguments, config_);
  }

  // To partition 0: each with its offset as payload.
  void send(int count) {
    for (int i = 0; i < count; ++i)
      producer_.send({.topic = site_.topic(), .payload = std::to_string(i), .partition = 0});
  }

  std::vector<std::string> lines() const {
    std::ifstream in(file_);
    std::vector<std::string> found;
    for (std::string line; std::getline(in, line);) found.push_back(line);
    return found;
  }

  std::vector<std::string> payloads() const {
    std::vector<std::string> found;
    for (const std::string& line : lines())
      found.push_back(nlohmann::json::parse(line)["payload"]["text"]);
    return found;
  }

  Site site_;
  Producer producer_;
  const sandbox::TemporaryFolder folder_{"record"};
  const std::filesystem::path config_ = folder_.path() / "worker.json";
  const std::string file_ = folder_.path() / "messages.jsonl";
};

TEST_F(Recorded, AreAsTheProducerSentThem) {
  const std::string bytes("\xff\0\x01", 3);
  producer_.send({.topic = site_.topic(),
                  .payload = bytes,
                  .key = "k",
                  .headers = {{"id", "p1"}, {"raw", bytes}, {"none", std::nullopt}},
                  .partition = 1,
                  .timestamp_ms = 1'700'000'000'123});
  const Said said = record(site_.topic());
  ASSERT_EQ(said.code, 0) << said.text;
  EXPECT_THAT(said.text, HasSubstr("recorded: 1"));
  EXPECT_THAT(lines(), ElementsAre("{\"topic\":\"" + site_.topic() + kRecordedLine));
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(file_).permissions(), perms::owner_read | perms::owner_write);
}

TEST_F(Recorded, AreTheNewestOfAPartitionInTheirOrder) {
  send(10);
  ASSERT_EQ(record(site_.topic() + "/0", {"--count", "3"}).code, 0);
  EXPECT_THAT(payloads(), ElementsAre("7", "8", "9"));
}

TEST_F(Recorded, BeginAtAnOffset) {
  send(5);
  ASSERT_EQ(record(site_.topic() + "/0/1", {"--count", "2"}).code, 0);
  EXPECT_THAT(payloads(), ElementsAre("1", "2"));
  const Said beyond = record(site_.topic() + "/0/5", {"--out", file_ + "2"});
  EXPECT_EQ(beyond.code, 1);
  EXPECT_THAT(beyond.text, HasSubstr("Kafka's log holds no offset 5; it holds 0 to 4"));
}

TEST_F(Recorded, AreNoneOfAPartitionThatIsNotThere) {
  const Said said = record(site_.topic() + "/2");
  EXPECT_EQ(said.code, 1) << said.text;
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(Recorded, NeverReplaceAFile) {
  std::ofstream(file_) << "mine";
  const Said said = record(site_.topic());
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.text, HasSubstr("is there already"));
}

}  // namespace
}  // namespace hapax::support
