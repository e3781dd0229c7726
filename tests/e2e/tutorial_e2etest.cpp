// The first hour, typed as docs/tutorial.md has it, from an installed hapax to the audit. What a
// package of Debian or of Kafka brings is there before: the user of PostgreSQL, kafka-topics.sh.
#include <gmock/gmock.h>

#include <cstdlib>
#include <regex>

#include "sandbox/child_process.hpp"
#include "sandbox/postgres_server.hpp"
#include "sandbox/temporary_folder.hpp"
#include "support/group_lag.hpp"
#include "support/kafka_admin.hpp"
#include "support/runbook.hpp"

namespace hapax::support {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class Tutorial : public testing::Test {
 protected:
  void SetUp() override {
    HAPAX_NEEDS_KAFKA();
    postgres_.emplace();
    const auto prefix = folder_.path() / "prefix";
    sandbox::run_to_end({.argv = {"cmake", "--install", HAPAX_BINARY_DIR, "--prefix", prefix},
                         .output = folder_.path() / "installed"},
                        3min);
    environment_ = {
        {"PATH", (prefix / "bin").string() + ":" + std::getenv("PATH")},
        {"CMAKE_PREFIX_PATH", prefix},
        {"PGHOST", "127.0.0.1"},
        {"PGPORT", std::to_string(postgres_->port())},
        {"PGUSER", "postgres"},
    };
    create_topic(bootstrap(), "payments", 6);
  }

  static std::string bootstrap() { return shared_kafka().bootstrap(); }

  Runbook section(const std::string& heading) {
    return Runbook("docs/tutorial.md", heading, environment_, [this](std::string block) {
      static const std::regex brought("(sudo -u postgres createuser|kafka-topics.sh)[^\n]*\n");
      block = std::regex_replace(block, brought, "");
      block = std::regex_replace(block, std::regex("127\\.0\\.0\\.1:9092"), bootstrap());
      return std::regex_replace(block, std::regex("@localhost/"),
                                "@localhost:" + std::to_string(postgres_->port()) + "/");
    });
  }

  // The two `export` lines of this block count in later sections, too.
  void keep_exports(const std::string& block) {
    static const std::regex line("export (\\w+)='?([^' \n]+)'?");
    for (std::sregex_iterator it(block.begin(), block.end(), line), end; it != end; ++it)
      environment_[(*it)[1]] = (*it)[2];
  }

  std::filesystem::path project() const { return folder_.path() / "payments"; }

  sandbox::TemporaryFolder folder_{"tutorial"};
  std::optional<sandbox::PostgresServer> postgres_;
  std::map<std::string, std::string> environment_;
};

TEST_F(Tutorial, LeadsFromAnInstalledHapaxToAnAudit) {
  const auto clone = folder_.path() / "clone";
  std::filesystem::create_directory(clone);
  EXPECT_THAT(section("## 2. Make a project").type_next(clone), HasSubstr("100% tests passed"));
  section("## 3. Make the database").type_next(project());
  keep_exports(section("## 4. Reach your Kafka").take_next());
  EXPECT_THAT(section("## 4. Reach your Kafka").type_next(project()),
              HasSubstr("ok    rights: all"));
  Runbook run = section("## 5. Run it");
  ASSERT_EQ(run.take_next(), "hapax run -c worker.json\n");
  sandbox::ChildProcess worker(
      {.argv = {folder_.path() / "prefix/bin/hapax", "run", "-c", "worker.json"},
       .environment = environment_,
       .folder = project(),
       .output = folder_.path() / "worker.log"});
  run.type_next(project());
  await_no_lag(bootstrap(), "payments", "payments", 6);
  const std::string shown = run.type_next(project());
  EXPECT_THAT(shown,
              testing::ContainsRegex("COMPLETED +DUPLICATE +DEAD-LETTER +UNACCOUNTED *\n(.*\n)*"
                                     "all +1 +1 +1 +0"));
  for (const char* part :
       {"ada     |     30\n(1 row)", "dead letters: 1 (rejected 1)", "amount must be positive",
        "key m1 in scope payments: completed", "every offset is accounted for"})
    EXPECT_THAT(shown, HasSubstr(part));
  EXPECT_THAT(run.type_next(project()), HasSubstr("typo in amount"));
  worker.signal(SIGTERM);
  EXPECT_TRUE(worker.wait(60s).value_or(sandbox::Exit{.code = 1}).success());
}

}  // namespace
}  // namespace hapax::support
