// The console in a real browser: browser_test.py and browser_many_test.py open it. This makes what
// they show, and looks at what their orders changed.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>

#include "console/console_case.hpp"
#include "sandbox/child_process.hpp"
#include "sandbox/temporary_folder.hpp"

namespace hapax::console {
namespace {

class ConsoleBrowser : public ConsoleCase {
 protected:
  // Letter 1 is hostile, 2 and 4 are rejected, and 60 more have no key.
  void fill() {
    letters(64);
    database.run(
        "UPDATE hapax.dead_letters SET reason = CASE WHEN id IN (2, 4) THEN 'rejected' WHEN id IN "
        "(1, 3) THEN 'crashed' ELSE 'missing_key' END; "
        "UPDATE hapax.dead_letters SET payload = '<script>window.hacked = 1</script>', error = "
        "'<img src=x onerror=window.hacked=1>' || chr(27) || '[2J' || chr(8238), message_key = "
        "'</td><script>window.hacked=1</script>', header_names = ARRAY['<b>x</b>']::bytea[], "
        "header_values = ARRAY['\\x1b'::bytea] WHERE id = 1; "
        "UPDATE hapax.dead_letters SET payload = convert_to(E'a\\r\\nb', 'UTF8') WHERE id = 3; "
        "UPDATE hapax.dead_letters SET payload = '{\"card\": {\"number\": \"4929\", \"month\": "
        "7}}' "
        "WHERE id = 5; "
        "UPDATE hapax.dead_letters SET payload = NULL, other = '{\"bytes_kept\": false}' WHERE id "
        "= "
        "6; "
        "INSERT INTO hapax.checkpoints (group_id, topic, partition, next_offset, key_spec, scope, "
        "owner) VALUES ('g', 't', 0, 7, 'k', 's', NULL), ('g', 't', 1, 41, 'k', 's', 'worker-1'), "
        "('g', 't', 2, 1042, 'k', 's', 'worker-2'); "
        "INSERT INTO hapax.attempts (group_id, topic, generation, partition, kafka_offset, count, "
        "last_error, handler, next_try) VALUES ('g', 't', 1, 1, 42, 3, 'the bank does not answer', "
        "'payments', now() + interval '40 s'); "
        "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
        "partition, kafka_offset, expires_at, result) VALUES ('k2', 's', 'completed', 'g', 't', 1, "
        "0, 7, now() + interval '1 day', '{\"status\": \"booked\"}')");
    halt("handler_ended_transaction", "7");
    fill_outbox();
    fill_calls();
  }

  // Runs a script beside this file; skips the test if there is no browser.
  static void open_in_browser(const std::string& script, const std::vector<std::string>& words) {
    const sandbox::TemporaryFolder folder("browser");
    const auto log = folder.path() / "log";
    std::vector<std::string> argv = {"/usr/bin/python3", "-B",
                                     test::source_folder() / "tests/console" / script};
    argv.insert(argv.end(), words.begin(), words.end());
    sandbox::ChildProcess process({.argv = argv, .output = log});
    const auto exit = process.wait(std::chrono::seconds(600));
    std::ifstream output(log);
    const std::string told{std::istreambuf_iterator<char>(output), {}};
    if (exit && exit->code == 77) GTEST_SKIP() << told;
    ASSERT_TRUE(exit && exit->success()) << told;
    std::cout << told;
  }

  void fill_outbox() {
    database.run(
        "INSERT INTO hapax.outbox (group_id, topic, record_key, payload, headers, idempotency_key, "
        "source_topic, source_generation, source_partition, source_offset) SELECT 'g', 'r', "
        "convert_to('key' || n, 'UTF8'), '{\"amount\": 5}', '[]', 'i' || n, 't', 1, 0, n FROM "
        "generate_series(1, 2) n; "
        "INSERT INTO hapax.outbox_halts (group_id, topic, row_id, record_key, reason, detail, "
        "halted_by) SELECT 'g', 'r', n, convert_to('key' || n, 'UTF8'), 'record_refused', 'the "
        "record is too large', 'worker-1' FROM generate_series(1, 2) n");
  }

  void fill_calls() {
    setup.config.routes[0].outside.emplace();
    database.run(
        "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
        "partition, kafka_offset, expires_at, token, calls, called_at, alone, crashes, error) "
        "VALUES ('c1', 's', 'unknown', 'g', 't', 1, 0, 3, 'infinity', 100, 1, now(), false, 0, "
        "'the connection was lost')");
  }
};

TEST_F(ConsoleBrowser, LoadsEveryViewGivesEveryOrderAndRunsNoScriptOfAMessage) {
  as_operator();
  setup.ask_kafka = [](app::KafkaSide& side) {
    for (auto& [partition, told] : side.partitions) {
      told.committed = 40;
      told.end = 1200 + partition.second;
    }
    side.members = kafka::Members{"Stable", 2, {{"t", 0}, {"t", 1}, {"t", 2}}};
  };
  fill();
  ConsoleSetup read_only = setup;
  read_only.url.clear();
  const Console other(read_only);
  ConsoleSetup masking = setup;
  masking.config.console.mask = {"/card/number"};
  const Console masked(masking);

  std::vector<std::string> words = {console().url(), other.url(), masked.url()};
  if (const char* const screenshots = std::getenv("HAPAX_SCREENSHOTS"))
    words.emplace_back(screenshots);
  open_in_browser("browser_test.py", words);
  if (IsSkipped() || HasFatalFailure()) return;

  EXPECT_EQ(database.value("SELECT action, count(*), min(who), min(why) FROM hapax.operator_log "
                           "GROUP BY action ORDER BY action"),
            "dead discard|2|ann|it's fixed\n"
            "dead replay|3|ann|it's fixed\n"
            "dead replay --cancel|1|ann|it's fixed\n"
            "outbox retry|1|ann|it's fixed\n"
            "outbox skip|1|ann|it's fixed\n"
            "outside decide --happened|1|ann|it's fixed\n"
            "resume retry|1|ann|disk is back");
  EXPECT_EQ(database.value("SELECT convert_from(payload, 'UTF8') FROM hapax.replays WHERE edited"),
            "{\"amount\": 7}");
  EXPECT_EQ(database.value("SELECT answer FROM hapax.idempotency_keys WHERE key = 'c1'"),
            "{\"charge\": 1}");
}

TEST_F(ConsoleBrowser, TenThousandLettersMakeNoViewLargerOrSlow) {
  as_operator();
  letters(10'000);
  database.run(
      "UPDATE hapax.dead_letters SET error = repeat(md5(id::text), 255) || ' (letter ' || id || "
      "')'");
  database.run(
      "INSERT INTO hapax.idempotency_keys (key, scope, status, group_id, topic, generation, "
      "partition, kafka_offset, expires_at) SELECT 'other' || lpad(n::text, 5, '0'), 's', "
      "'completed', 'g', 't', 1, 0, n, now() + interval '1 day' FROM generate_series(1, 10000) n");
  open_in_browser("browser_many_test.py", {console().url()});
  if (IsSkipped() || HasFatalFailure()) return;
  EXPECT_EQ(database.value("SELECT ended_as, count(*) FROM hapax.dead_letters GROUP BY 1"),
            "discarded|10000");
}

}  // namespace
}  // namespace hapax::console
