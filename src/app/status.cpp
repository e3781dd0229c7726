// hapax status: where the group stands, as PostgreSQL and Kafka tell it. Live numbers of a worker
// are at its /metrics.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <thread>

#include "app/command.hpp"
#include "app/kafka_reader.hpp"
#include "app/output.hpp"
#include "app/store_access.hpp"
#include "observe/log.hpp"
#include "store/checkpoints.hpp"
#include "store/decisions.hpp"
#include "store/inspect.hpp"

namespace hapax::app {
namespace {

constexpr int kMaxWaiting = 50;

struct StatusOptions {
  ConfigOption config;
  double watch = 0;
  bool json = false;
};

// What Kafka knows of one partition; empty where it does not answer.
struct InKafka {
  std::optional<std::int64_t> committed, end;
};
using KafkaSide = std::map<store::TopicPartition, InKafka>;

// Every partition of the routes and of the checkpoints; numbers until Kafka fails to answer.
// Returns the reason where it did.
std::string ask_kafka(const config::Config& config, KafkaReader& reader, KafkaSide& side) {
  try {
    reader.reach(kKafkaTimeout);
    const kafka::Consumer& consumer = reader.consumer();
    for (const config::Route& route : config.routes) {
      const int count = consumer.partition_count(route.topic, kKafkaTimeout);
      for (int partition = 0; partition < count; ++partition) side[{route.topic, partition}];
    }
    std::vector<store::TopicPartition> partitions;
    for (const auto& [partition, unused] : side) partitions.push_back(partition);
    if (partitions.empty()) return {};
    for (const auto& [partition, committed] : consumer.committed(partitions, kKafkaTimeout))
      side[partition].committed = committed.offset;
    std::map<std::string, int> counts;  // 0: of a topic that was deleted, and is not asked for
    for (const store::TopicPartition& partition : partitions) {
      const auto [count, is_new] = counts.try_emplace(partition.first);
      if (is_new) count->second = consumer.partition_count(partition.first, kKafkaTimeout);
      if (partition.second < count->second)
        side[partition].end = consumer.range(partition, kKafkaTimeout).high;
    }
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

Json or_null(const std::optional<std::int64_t>& number) { return number ? Json(*number) : Json(); }

bool stops(const store::Halt& halt, const store::TopicPartition& partition) {
  return halt.topic == partition.first && (halt.whole_route || halt.partition == partition.second);
}

std::string state_of(const Json& row, const store::Halt* halt) {
  if (halt != nullptr) return "halted: " + halt->reason;
  if (row.is_null() || row.at("next_offset").is_null()) return "not started";
  if (row.at("owner").is_null()) return "left";
  if (row.at("started_runs") >= 2)
    return "taken " + row.at("started_runs").dump() + " times without progress";
  return "running";
}

// How far the group is behind: Kafka's view where there is one, since that is what others show.
Json lag_of(const InKafka& kafka, const Json& next_offset) {
  if (!kafka.end) return nullptr;
  if (kafka.committed) return std::max<std::int64_t>(0, *kafka.end - *kafka.committed);
  if (next_offset.is_null()) return nullptr;
  return std::max<std::int64_t>(0, *kafka.end - next_offset.get<std::int64_t>());
}

Json partition_json(const store::TopicPartition& id, const Json& row, const InKafka& kafka,
                    const std::vector<store::Halt>& halts) {
  const auto halt = std::ranges::find_if(halts, [&](const auto& h) { return stops(h, id); });
  const auto column = [&](const char* name) { return row.is_null() ? Json() : row.at(name); };
  return {{"topic", id.first},
          {"partition", id.second},
          {"state", state_of(row, halt == halts.end() ? nullptr : &*halt)},
          {"owner", column("owner")},
          {"epoch", column("epoch")},
          {"generation", column("generation")},
          {"checkpoint", column("next_offset")},
          {"committed", or_null(kafka.committed)},
          {"end", or_null(kafka.end)},
          {"lag", lag_of(kafka, column("next_offset"))},
          {"start_as", column("start_as")},
          {"updated_at", column("updated_at")},
          {"age_seconds", column("age_seconds")}};
}

Json halt_json(const store::Halt& halt) {
  return {{"topic", halt.topic},
          {"partition", halt.partition},
          {"whole_route", halt.whole_route},
          {"offset", or_null(halt.offset)},
          {"reason", halt.reason},
          {"detail", halt.detail},
          {"since", halt.since},
          {"halted_by", halt.halted_by},
          {"decisions", store::decisions_for(halt.reason, halt.offset.has_value())}};
}

Json gather(const config::Config& config, store::Session& session, KafkaReader& reader) {
  const std::string& group = group_of(config);
  const std::vector<store::Halt> halts = store::read_halts(session, group);
  KafkaSide side;
  std::map<store::TopicPartition, Json> rows;
  for (const Json& row : store::read_partitions(session, group)) {
    const store::TopicPartition id(row.at("topic"), row.at("partition"));
    rows[id] = row;
    side[id];
  }
  for (const store::Halt& halt : halts) side[{halt.topic, halt.partition}];
  const std::string away = ask_kafka(config, reader, side);
  Json status = {{"group", group},
                 {"kafka_error", away.empty() ? Json() : Json(away)},
                 {"partitions", Json::array()},
                 {"halts", Json::array()}};
  for (const auto& [id, kafka] : side)
    status["partitions"].push_back(partition_json(id, rows[id], kafka, halts));
  for (const store::Halt& halt : halts) status["halts"].push_back(halt_json(halt));
  status["waiting"] = store::read_waiting(session, group, kMaxWaiting);
  status["dead_letters"] = store::count_dead_letters(session, group);
  return status;
}

void print_partitions(const Json& status) {
  const char* const none = status.at("kafka_error").is_null() ? "-" : "?";
  const auto number = [&](const Json& value) { return value.is_null() ? none : value.dump(); };
  Table table({"TOPIC", "PARTITION", "STATE", "CHECKPOINT", "COMMITTED", "END", "LAG", "EPOCH",
               "MOVED", "OWNER"});
  for (const Json& row : status.at("partitions"))
    table.add({cell(row.at("topic")), cell(row.at("partition")), cell(row.at("state")),
               cell(row.at("checkpoint")), number(row.at("committed")), number(row.at("end")),
               number(row.at("lag")), cell(row.at("epoch")),
               row.at("age_seconds").is_null() ? "-" : row.at("age_seconds").dump() + "s ago",
               cell(row.at("owner"))});
  if (table.empty()) {
    print_line("no partition was ever started");
  } else {
    table.print();
  }
}

void print_halts(const Json& halts) {
  for (const Json& halt : halts) {
    const bool route = halt.at("whole_route");
    const std::string place =
        cell(halt.at("topic")) + (route ? "" : "/" + cell(halt.at("partition")));
    print_line("HALT  " + place + (route ? " (whole route)" : "") + " halted since " +
               cell(halt.at("since")) + " by " + cell(halt.at("halted_by")) + ": " +
               cell(halt.at("reason")) +
               (halt.at("offset").is_null() ? "" : " at offset " + cell(halt.at("offset"))));
    print_line("      " + cell(halt.at("detail")));
    print_line("      end it: hapax resume -c … --url … " + place + " --why … --decision " +
               cell(halt.at("decisions")));
  }
}

void print_waiting(const Json& waiting) {
  Table table({"WAITING FOR A RETRY", "FAILED", "NEXT TRY", "HANDLER", "LAST ERROR"});
  for (const Json& row : waiting)
    table.add({coordinates_cell(row), cell(row.at("count")) + "x",
               row.at("wait_seconds") == 0 ? "now" : "in " + row.at("wait_seconds").dump() + "s",
               cell(row.at("handler")), cut(cell(row.at("last_error")), 80)});
  if (table.empty()) return;
  std::printf("\n");
  table.print();
  if (waiting.size() == kMaxWaiting) print_line("… and perhaps more");
}

void print_dead(const Json& counts) {
  std::int64_t total = 0;
  std::string reasons;
  for (const Json& row : counts) {
    total += row.at("count").get<std::int64_t>();
    reasons +=
        (reasons.empty() ? " (" : ", ") + cell(row.at("reason")) + " " + cell(row.at("count"));
  }
  const bool more = total > store::kMaxCount;
  print_line(std::string("dead letters: ") + (more ? "more than " : "") +
             std::to_string(more ? store::kMaxCount : total) +
             (reasons.empty() ? "" : reasons + ")"));
}

void print_status(const Json& status) {
  print_line("group " + cell(status.at("group")));
  if (!status.at("kafka_error").is_null())
    print_line("Kafka does not answer: " + cell(status.at("kafka_error")));
  print_partitions(status);
  if (!status.at("halts").empty()) std::printf("\n");
  print_halts(status.at("halts"));
  print_waiting(status.at("waiting"));
  std::printf("\n");
  print_dead(status.at("dead_letters"));
}

ExitCode status(const StatusOptions& options) {
  const config::Config config = load(options.config);
  observe::log::set_up(observe::log::Level::error, observe::log::Format::text);
  store::Session session = open_store(config);
  KafkaReader reader(config);
  const bool redraw = isatty(STDOUT_FILENO) != 0 && !options.json;
  for (;;) {
    const Json now = gather(config, session, reader);
    if (options.watch > 0 && redraw) std::fputs("\x1b[H\x1b[2J", stdout);
    if (options.json) {
      std::printf("%s\n", now.dump(options.watch > 0 ? -1 : 2).c_str());  // watched: a line each
    } else {
      print_status(now);
    }
    if (options.watch <= 0) return kDone;
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::duration<double>(options.watch));  // ^C ends it
    if (!redraw && !options.json) std::printf("\n");
  }
}

}  // namespace

void add_status(CLI::App& app, CommandLine& line) {
  auto* const command = app.add_subcommand(
      "status", "Show the state of the group: partitions, lag, halts, retries, dead letters");
  const auto options = std::make_shared<StatusOptions>();
  add_config(*command, options->config);
  command->add_flag("--json", options->json, "For programs; with --watch a line each");
  command->add_option("--watch", options->watch, "Again every so many seconds, until ^C")
      ->check(CLI::Range(0.1, 86'400.0));
  command->footer(
      "LAG is Kafka's: end minus committed. \"?\" is not known, \"-\" is none.\n"
      "Examples:\n"
      "  hapax status -c worker.json --watch 2\n"
      "  hapax status -c worker.json --json | jq '.partitions[] | select(.lag > 1000)'");
  command->callback([&line, options] { line.command = [options] { return status(*options); }; });
}

}  // namespace hapax::app
