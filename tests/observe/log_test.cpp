#include "observe/log.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace hapax::observe::log {
namespace {

std::string written(Level level, Format format, const std::function<void()>& act) {
  set_up(level, format);
  testing::internal::CaptureStderr();
  act();
  std::string lines = testing::internal::GetCapturedStderr();
  set_up(Level::info, Format::text);
  return lines;
}

TEST(Log, WritesTimeLevelEventSentenceAndFields) {
  const auto line = written(Level::info, Format::text, [] {
    warning("lag_grows",
            {{"topic", std::string("payments")},
             {"partition", 3},
             {"ok", true},
             {"rate", 1.5},
             {"size", std::uint64_t{18446744073709551615U}}},
            "the lag grows");
  });
  std::string time = line.substr(0, line.find(' '));
  for (char& c : time)
    if (c >= '0' && c <= '9') c = '0';
  EXPECT_EQ(time, "0000-00-00T00:00:00.000000Z");
  EXPECT_NE(line.find("warning"), std::string::npos);
  EXPECT_NE(line.find(" lag_grows: the lag grows topic=payments partition=3 ok=true rate=1.5 "
                      "size=18446744073709551615\n"),
            std::string::npos)
      << line;
}

TEST(Log, KeepsHostileTextInOneLineAndInItsField) {
  const auto line = written(Level::info, Format::text, [] {
    info("key_seen", {{"key", "a\nlevel=error \x1b[2J\""}, {"path", "a\\b"}},
         "a sentence\nwith a newline");
  });
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_NE(line.find(R"(a sentence\x0awith a newline key="a\x0alevel=error \x1b[2J\"" )"
                      R"(path="a\\b")"),
            std::string::npos)
      << line;
}

TEST(Log, LeavesOutAFieldThatIsNotGivenOrHasNoText) {
  for (const Format format : {Format::text, Format::json}) {
    const auto line = written(Level::info, format, [] {
      const std::optional<std::string_view> none, some = "why";
      info("failed", {{"error", none}, {"sqlstate", ""}, {"cause", some}}, "it failed");
    });
    EXPECT_EQ(line.find("error"), std::string::npos) << line;
    EXPECT_EQ(line.find("sqlstate"), std::string::npos) << line;
    EXPECT_NE(line.find("why"), std::string::npos) << line;
  }
}

TEST(Log, WritesOneJsonObjectALine) {
  const auto line = written(Level::info, Format::json, [] {
    info("partition_assigned",
         {{"topic", "payments"}, {"partition", 3}, {"lag", -1L}, {"new", false}},
         "partition assigned");
  });
  const auto object = nlohmann::json::parse(line);
  EXPECT_EQ(object.at("level"), "info");
  EXPECT_EQ(object.at("event"), "partition_assigned");
  EXPECT_EQ(object.at("sentence"), "partition assigned");
  EXPECT_EQ(object.at("topic"), "payments");
  EXPECT_EQ(object.at("partition"), 3);
  EXPECT_EQ(object.at("lag"), -1);
  EXPECT_EQ(object.at("new"), false);
  EXPECT_TRUE(object.at("time").get<std::string>().ends_with("Z"));
}

TEST(Log, WritesValidJsonForAnyBytes) {
  std::string all_bytes;
  for (int byte = 0; byte < 256; ++byte) all_bytes += static_cast<char>(byte);
  const auto line = written(Level::info, Format::json, [&] {
    info(all_bytes, {{"value", all_bytes}, {"nan", std::numeric_limits<double>::quiet_NaN()}},
         "%v {} \xff");
  });
  const auto object = nlohmann::json::parse(line);
  EXPECT_EQ(object.at("value"), to_valid_utf8(all_bytes));
  EXPECT_EQ(object.at("sentence"), "%v {} \\xff");
  EXPECT_TRUE(object.at("nan").is_null());
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
}

TEST(Log, DropsEventsBelowTheLevel) {
  const auto lines = written(Level::warning, Format::text, [] {
    debug("a", {}, "no");
    info("b", {}, "no");
    warning("c", {}, "yes");
    error("d", {}, "yes");
    EXPECT_FALSE(enabled(Level::info));
    EXPECT_TRUE(enabled(Level::warning));
  });
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2) << lines;
}

TEST(Log, KeepsLinesOfManyThreadsApart) {
  const auto lines = written(Level::info, Format::json, [] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([t] {
        for (int i = 0; i < 100; ++i) info("e", {{"thread", t}, {"i", i}}, "line");
      });
    for (auto& thread : threads) thread.join();
  });
  std::istringstream stream(lines);
  int count = 0;
  for (std::string line; std::getline(stream, line); ++count)
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
  EXPECT_EQ(count, 400);
}

}  // namespace
}  // namespace hapax::observe::log
