#include "tools/bench/options.hpp"

#include <map>

namespace hapax::app {

void add_bench_options(CLI::App& command, BenchOptions& options) {
  const auto count = [&](const char* name, auto& value, auto low, auto high, const char* text) {
    return command.add_option(name, value, text)->check(CLI::Range(low, high));
  };
  command.add_option("-c,--config", options.config,
                     "A worker's configuration: its Kafka, PostgreSQL and settings are used. "
                     "Without: a built-in broker and a throw-away PostgreSQL");
  command
      .add_option("--url", options.url,
                  "libpq URI of who may make a schema and delete from hapax's tables (default: "
                  "the configuration's)")
      ->needs("--config");
  command.add_option("--mode", options.modes, "Only this mode; may be repeated")
      ->check(
          CLI::IsMember(std::vector<std::string>(std::begin(kBenchModes), std::end(kBenchModes))));
  count("--messages", options.messages, 100, 100'000'000, "Messages a round")
      ->capture_default_str();
  count("--rounds", options.rounds, 1, 1000, "How often each mode alternates with the bare loop")
      ->capture_default_str();
  count("--lanes", options.lanes, 1, 1024,
        "Lanes, and connections of the bare loop (default: worker.lanes)");
  count("--batch", options.batch, 2, 10'000, "Messages a transaction in mode batch, at most")
      ->capture_default_str();
  count("--payload-bytes", options.payload_bytes, 100, 900'000, "Size of a payload")
      ->capture_default_str();
  count("--partitions", options.partitions, 1, 1000, "Partitions of the topics")
      ->capture_default_str();
  count("--keys", options.keys, 0, 1'000'000'000,
        "Keys that are in the table before: seconds a million, and about 250 bytes of disk each")
      ->capture_default_str();
  command
      .add_option("--postgres-delay", options.postgres_delay_ms,
                  "Put PostgreSQL so far away (a round trip): 1ms, 500us; for both, hapax and the "
                  "bare loop")
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"us", 0.001}, {"ms", 1}},
                                        CLI::AsNumberWithUnit::UNIT_REQUIRED))
      ->check(CLI::Range(0.0, 10'000.0));
  command
      .add_option("--durability", options.durability,
                  "worker.durability of both: synchronous, checkpoint")
      ->check(CLI::IsMember({"synchronous", "checkpoint"}))
      ->capture_default_str();
  count("--rate", options.rate, 1.0, 1e7,
        "Messages a second for the latency (default: half of the throughput)");
  count("--target", options.target, 1.0, 1e9,
        "Messages a second that all workers shall settle, for the advice at the end (default: what "
        "one worker is planned to carry)");
  count("--seconds", options.seconds, 0, 86'400, "How long to measure latency; 0: not")
      ->capture_default_str();
  command.add_flag("--json", options.json, "JSON on stdout");
  command.add_option("--svg", options.svg, "A file for the picture");
  command.footer(
      "Modes: message (one transaction each), batch (--batch messages share one), positions (the\n"
      "same with key \"position\"), duplicates (all keys are known). OF THE BARE LOOP compares the "
      "pace with that of a hand-written loop. It sends the\n"
      "same SQL on as many connections, without Kafka. Both alternate; medians count.\n"
      "Latency runs from the time when a message was due to be sent to its COMMIT.\n"
      "The last lines tell how many workers, connections and how much disk --target needs.\n\n"
      "The bench makes topics, groups and a schema named hapax-bench-…, and removes them. It "
      "writes\n"
      "its keys to hapax.idempotency_keys, so use a database that may carry the load. --keys adds\n"
      "more of them, as INSERT … SELECT, and removes them again.\n"
      "Exit code 1 if a payment was not booked exactly once.\n\n"
      "Examples:\n"
      "  hapax bench\n"
      "  hapax bench -c worker.json --url postgresql://owner@db/payments --lanes 16\n"
      "  hapax bench --mode batch --batch 500 --messages 1000000 --json --svg bench.svg\n"
      "  hapax bench --postgres-delay 1ms --lanes 32\n"
      "  hapax bench --keys 10000000 --mode message");
}

}  // namespace hapax::app
