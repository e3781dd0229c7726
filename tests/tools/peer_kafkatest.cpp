// scripts/peer.sh, small, so that it cannot rot.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "support/site.hpp"

namespace hapax::support {
namespace {

constexpr int kPayments = 200;

TEST(PeerScript, BooksATopicOnceInEachMode) {
  for (const char* mode : {"message", "batch", "positions"}) {
    Site site = Site::on_mock_cluster(2);
    Producer producer(site.bootstrap());
    site.pay(producer, 0, kPayments);
    const sandbox::TemporaryFolder folder("peer");
    const auto out = folder.path() / "out";
    sandbox::ChildProcess script({.argv = {HAPAX_SOURCE_DIR "/scripts/peer.sh"},
                                  .environment = {{"BROKER", site.bootstrap()},
                                                  {"PGURL", site.database().owner().url},
                                                  {"TOPIC", site.topic()},
                                                  {"GROUP", site.group()},
                                                  {"N", std::to_string(kPayments)},
                                                  {"CONCURRENCY", "4"},
                                                  {"MODE", mode},
                                                  {"BUILD", HAPAX_BINARY_DIR}},
                                  .output = out});
    const auto exit = script.wait(std::chrono::seconds(60));
    std::ostringstream said;
    said << std::ifstream(out).rdbuf();
    ASSERT_TRUE(exit && exit->success()) << mode << '\n' << said.str();
    site.expect_exact(kPayments, 0, std::string(mode) == "positions");
  }
}

}  // namespace
}  // namespace hapax::support
