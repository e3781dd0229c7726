// `hapax bench` on its built-in broker: small, so that it cannot rot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sandbox/child_process.hpp"
#include "sandbox/temporary_folder.hpp"

namespace hapax::app {
namespace {

using namespace std::chrono_literals;

constexpr const char* kHapax = HAPAX_BINARY_DIR "/bin/hapax";

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Bench, BooksEveryMessageOnceAndTellsWhatEachModeMade) {
  const sandbox::TemporaryFolder folder("bench");
  const auto out = folder.path() / "out";
  const auto svg = folder.path() / "bench.svg";
  sandbox::ChildProcess bench(
      {.argv = {kHapax, "bench", "--messages", "2000", "--rounds", "1", "--seconds", "1", "--rate",
                "200", "--lanes", "2", "--json", "--svg", svg},
       .output = out});
  const auto exit = bench.wait(600s);
  ASSERT_TRUE(exit && exit->success()) << text_of(out);
  const auto report = nlohmann::json::parse(text_of(out));

  // The bench counts in PostgreSQL after each round. Its exit code is 1 if one is missing or there
  // twice.
  EXPECT_EQ(report.at("exact"), true);
  EXPECT_EQ(report.at("wrong"), nlohmann::json::array());
  EXPECT_EQ(report.at("options").at("messages"), 2000);
  ASSERT_EQ(report.at("throughput").size(), 4U);
  for (const auto& [at, mode, batch] :
       {std::tuple(0, "message", 1), std::tuple(1, "batch", 100), std::tuple(2, "positions", 100),
        std::tuple(3, "duplicates", 1)}) {
    const auto& figures = report.at("throughput").at(at);
    EXPECT_EQ(figures.at("mode"), mode);
    EXPECT_EQ(figures.at("batch"), batch);
    EXPECT_EQ(figures.at("rounds").size(), 1U);
    EXPECT_GT(figures.at("per_second"), 0);
    EXPECT_GT(figures.at("bare_per_second"), 0);
    EXPECT_GT(figures.at("share"), 0);
  }
  ASSERT_EQ(report.at("latency").size(), 3U);
  for (const auto& figures : report.at("latency")) {
    EXPECT_EQ(figures.at("settled"), figures.at("sent"));
    EXPECT_GT(figures.at("p50_ms"), 0);
    EXPECT_LE(figures.at("p50_ms"), figures.at("p99_9_ms"));
  }
  ASSERT_EQ(report.at("sizing").size(), 3U);  // a duplicate needs no size of its own
  const auto& sizing = report.at("sizing").at(0);
  EXPECT_EQ(sizing.at("workers"), 1);  // without --target
  EXPECT_EQ(sizing.at("connections"), 8);
  EXPECT_EQ(sizing.at("retention_seconds"), 604'800);
  EXPECT_GT(sizing.at("key_bytes"), 0);
  EXPECT_EQ(report.at("sizing").at(2).at("key_bytes"), 0);
  EXPECT_TRUE(text_of(svg).starts_with("<svg"));

  // The page's tables are written from it.
  std::filesystem::rename(out, folder.path() / "base.json");
  const auto page = folder.path() / "page.md";
  std::ofstream(page) << "a\n<!-- bench: throughput -->\nold\n<!-- end -->\nz\n";
  sandbox::ChildProcess writer(
      {.argv = {HAPAX_SOURCE_DIR "/scripts/bench_tables.py", folder.path(), page},
       .output = folder.path() / "written"});
  const auto wrote = writer.wait(60s);
  ASSERT_TRUE(wrote && wrote->success()) << text_of(folder.path() / "written");
  EXPECT_THAT(text_of(page), testing::StartsWith("a\n<!-- bench: throughput -->\n\n| mode |"));
  EXPECT_THAT(text_of(page), testing::HasSubstr("\n| batch of 100 | "));
  EXPECT_THAT(text_of(page), testing::EndsWith(" |\n\n<!-- end -->\nz\n"));
}

// The delay is a lower bound: a message costs two round trips.
TEST(Bench, PutsPostgresFurtherAwayAndFillsTheTableIfAsked) {
  const sandbox::TemporaryFolder folder("bench");
  const auto out = folder.path() / "out";
  sandbox::ChildProcess bench(
      {.argv = {kHapax,    "bench",     "--messages", "500",          "--rounds",
                "1",       "--seconds", "1",          "--rate",       "50",
                "--lanes", "4",         "--mode",     "message",      "--postgres-delay",
                "3ms",     "--keys",    "1000",       "--durability", "checkpoint",
                "--json"},
       .output = out});
  const auto exit = bench.wait(600s);
  ASSERT_TRUE(exit && exit->success()) << text_of(out);
  const auto report = nlohmann::json::parse(text_of(out));
  EXPECT_EQ(report.at("exact"), true);
  EXPECT_EQ(report.at("options").at("keys"), 1000);
  EXPECT_EQ(report.at("options").at("postgres_delay_ms"), 3);
  EXPECT_EQ(report.at("options").at("durability"), "checkpoint");
  EXPECT_GE(report.at("latency").at(0).at("p50_ms"), 6);
  EXPECT_LT(report.at("throughput").at(0).at("bare_per_second"), 5 * 1000 / 3);
}

TEST(Bench, RefusesAnOwnerWithoutAConfiguration) {
  const sandbox::TemporaryFolder folder("bench");
  sandbox::ChildProcess bench(
      {.argv = {kHapax, "bench", "--url", "postgresql://x"}, .output = folder.path() / "out"});
  const auto exit = bench.wait(60s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 2);
}

}  // namespace
}  // namespace hapax::app
