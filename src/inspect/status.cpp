// hapax status: where the group stands, as PostgreSQL and Kafka tell it. Live numbers of a worker
// are at its /metrics.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <thread>

#include "cli/command.hpp"
#include "cli/kafka_reader.hpp"
#include "cli/output.hpp"
#include "cli/store_access.hpp"
#include "inspect/calls_state.hpp"
#include "inspect/outbox_state.hpp"
#include "observe/log.hpp"
#include "store/operator/decisions.hpp"
#include "store/operator/inspect.hpp"
#include "store/worker/checkpoints.hpp"

namespace hapax::app {
namespace {

constexpr int kMaxWaiting = 50;

// A broker that does not know the request is asked again until then.
constexpr std::chrono::milliseconds kMembersTimeout{3000};

// For one answer to a fetch; without it nothing is said of the right to read.
constexpr std::chrono::milliseconds kReadTimeout{3000};

struct StatusOptions {
  ConfigOption config;
  double watch = 0;
  bool json = false;
};

// What Kafka knows of one partition; empty where it does not answer.
struct InKafka {
  std::optional<std::int64_t> committed, end;
  std::optional<std::int64_t> open_since;  // a producer's transaction, if one is open
};

// What Kafka knows of the group.
struct KafkaSide {
  std::map<store::TopicPartition, InKafka> partitions;
  std::map<std::string, std::string> refused;  // topics of routes: why they cannot be read
  std::optional<kafka::Members> members;
  std::string away;  // why Kafka does not answer (any more)
};

struct Readers {
  explicit Readers(const config::Config& config)
      : whole(config, KafkaReader::End::whole), stable(config) {}
  KafkaReader whole;
  KafkaReader stable;  // sees only what a worker sees
};

// The partitions of the routes' topics.
void find_partitions(const config::Config& config, const kafka::Consumer& consumer,
                     KafkaSide& side) {
  for (const config::Route& route : config.routes) {
    try {
      const int count = consumer.partition_count(route.topic, kKafkaTimeout);
      for (int partition = 0; partition < count; ++partition)
        side.partitions[{route.topic, partition}];
      if (count == 0) side.refused[route.topic] = "it does not exist";
    } catch (const std::exception& error) {
      side.refused[route.topic] = error.what();
    }
  }
}

void find_ends(Readers& readers, KafkaSide& side) {
  const kafka::Consumer& consumer = readers.whole.consumer();
  std::vector<store::TopicPartition> asked;
  for (const auto& [partition, unused] : side.partitions)
    if (!side.refused.contains(partition.first)) asked.push_back(partition);
  if (asked.empty()) return;
  for (const auto& [partition, committed] : consumer.committed(asked, kKafkaTimeout))
    side.partitions[partition].committed = committed.offset;
  std::map<std::string, int> counts;  // 0: of a topic that was deleted, and is not asked for
  for (const store::TopicPartition& partition : asked) {
    const auto [count, is_new] = counts.try_emplace(partition.first);
    if (is_new) count->second = consumer.partition_count(partition.first, kKafkaTimeout);
    if (partition.second >= count->second) continue;
    InKafka& found = side.partitions[partition];
    found.end = consumer.range(partition, kKafkaTimeout).high;
    if (*found.end <= found.committed.value_or(0)) continue;
    const auto stable = readers.stable.consumer().range(partition, kKafkaTimeout).high;
    if (stable < *found.end) found.open_since = stable;
  }
}

// Kafka grants the right to read by topic, so one partition tells it for all.
void find_refusals(const config::Config& config, KafkaSide& side) {
  std::vector<kafka::Position> positions;
  for (const config::Route& route : config.routes)
    if (const auto first = side.partitions.find({route.topic, 0});
        first != side.partitions.end() && first->second.end)
      positions.push_back({first->first, *first->second.end});
  if (positions.empty()) return;
  KafkaReader reader(config, KafkaReader::End::whole);
  side.refused.merge(reader.refusals(positions, kReadTimeout));
}

// Every partition of the routes and of the checkpoints; numbers until Kafka fails to answer.
void ask_kafka(const config::Config& config, Readers& readers, KafkaSide& side) {
  try {
    readers.whole.reach(kKafkaTimeout);
    find_partitions(config, readers.whole.consumer(), side);
    find_ends(readers, side);
  } catch (const std::exception& error) {
    side.away = error.what();
    return;
  }
  try {
    find_refusals(config, side);
  } catch (const std::exception&) {
    // A partition that cannot be asked for says nothing of the right to read.
  }
  try {
    side.members = readers.whole.consumer().members(group_of(config), kMembersTimeout);
  } catch (const std::exception&) {
    // Without the right to describe the group the rest is told all the same.
  }
}

Json or_null(const std::optional<std::int64_t>& number) { return number ? Json(*number) : Json(); }

bool stops(const store::Halt& halt, const store::TopicPartition& partition) {
  return halt.topic == partition.first && (halt.whole_route || halt.partition == partition.second);
}

// A worker that died is a member until its session times out.
bool nobody_has(const store::TopicPartition& id, const std::optional<kafka::Members>& members) {
  return members && (members->state == "Stable" || members->state == "Empty") &&
         !members->partitions.contains(id);
}

constexpr const char* kOwnerIsGone = "owner is gone";

// Nothing moves the checkpoint of a partition in which there is nothing to do.
bool may_have_work(const Json& row, const InKafka& kafka) {
  return !kafka.end || *kafka.end > row.at("next_offset").get<std::int64_t>();
}

std::string state_of(const Json& row, const InKafka& kafka, const store::Halt* halt, bool refused,
                     bool nobodys) {
  if (halt != nullptr) return "halted: " + halt->reason;
  if (refused) return "refused";
  if (row.is_null() || row.at("next_offset").is_null()) return "not started";
  if (row.at("owner").is_null()) return "left";
  if (nobodys) return kOwnerIsGone;
  if (row.at("started_runs") >= 2 && may_have_work(row, kafka))
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

Json partition_json(const store::TopicPartition& id, const Json& row, const KafkaSide& side,
                    const std::vector<store::Halt>& halts) {
  const InKafka& kafka = side.partitions.at(id);
  const auto halt = std::ranges::find_if(halts, [&](const auto& h) { return stops(h, id); });
  const auto column = [&](const char* name) { return row.is_null() ? Json() : row.at(name); };
  return {{"topic", id.first},
          {"partition", id.second},
          {"state", state_of(row, kafka, halt == halts.end() ? nullptr : &*halt,
                             side.refused.contains(id.first), nobody_has(id, side.members))},
          {"owner", column("owner")},
          {"epoch", column("epoch")},
          {"generation", column("generation")},
          {"checkpoint", column("next_offset")},
          {"committed", or_null(kafka.committed)},
          {"end", or_null(kafka.end)},
          {"lag", lag_of(kafka, column("next_offset"))},
          {"open_transaction_at", or_null(kafka.open_since)},
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

Json gather(const config::Config& config, store::Session& session, Readers& readers) {
  const std::string& group = group_of(config);
  const std::vector<store::Halt> halts = store::read_halts(session, group);
  KafkaSide side;
  std::map<store::TopicPartition, Json> rows;
  for (const Json& row : store::read_partitions(session, group)) {
    const store::TopicPartition id(row.at("topic"), row.at("partition"));
    rows[id] = row;
    side.partitions[id];
  }
  for (const store::Halt& halt : halts) side.partitions[{halt.topic, halt.partition}];
  ask_kafka(config, readers, side);
  Json status = {{"group", group},
                 {"kafka_error", side.away.empty() ? Json() : Json(side.away)},
                 {"group_state", side.members ? Json(side.members->state) : Json()},
                 {"members", side.members ? Json(side.members->count) : Json()},
                 {"refused_topics", Json::array()},
                 {"partitions", Json::array()},
                 {"halts", Json::array()}};
  for (const auto& [topic, why] : side.refused)
    status["refused_topics"].push_back({{"topic", topic}, {"error", why}});
  for (const auto& [id, kafka] : side.partitions)
    status["partitions"].push_back(partition_json(id, rows[id], side, halts));
  for (const store::Halt& halt : halts) status["halts"].push_back(halt_json(halt));
  status["waiting"] = store::read_waiting(session, group, kMaxWaiting);
  status["dead_letters"] = store::count_dead_letters(session, group);
  status["outbox"] = outbox_state(session, group);
  status["calls"] = calls_state(config, session);
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
  for (const Json& row : status.at("partitions"))
    if (!row.at("open_transaction_at").is_null())
      print_line(cell(row.at("topic")) + "/" + cell(row.at("partition")) +
                 ": a producer's transaction is open since offset " +
                 cell(row.at("open_transaction_at")) +
                 "; workers read nothing from there on until it ends");
  for (const Json& refused : status.at("refused_topics"))
    print_line("topic " + cell(refused.at("topic")) +
               " of a route cannot be read: " + cell(refused.at("error")));
}

// `command`: what ends a halt, up to its place.
void print_halts(const Json& halts, const std::string& command) {
  for (const Json& halt : halts) {
    const bool route = halt.at("whole_route");
    const std::string place =
        cell(halt.at("topic")) + (route ? "" : "/" + cell(halt.at("partition")));
    print_line("HALT  " + place + (route ? " (whole route)" : "") + " halted since " +
               cell(halt.at("since")) + " by " + cell(halt.at("halted_by")) + ": " +
               cell(halt.at("reason")) +
               (halt.at("offset").is_null() ? "" : " at offset " + cell(halt.at("offset"))));
    print_line("      " + cell(halt.at("detail")));
    print_line("      end it: " + command + place + " --decision retry --why 'what was done'");
    if (halt.at("decisions") != "retry")
      print_line("      decisions: " + cell(halt.at("decisions")));
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
  std::int64_t total = 0, since = 0;
  std::string reasons;
  for (const Json& row : counts) {
    total += row.at("count").get<std::int64_t>();
    since += row.at("completed_since").get<std::int64_t>();
    reasons +=
        (reasons.empty() ? " (" : ", ") + cell(row.at("reason")) + " " + cell(row.at("count"));
  }
  const bool more = total > store::kMaxCount;
  print_line(std::string("dead letters: ") + (more ? "more than " : "") +
             std::to_string(more ? store::kMaxCount : total) +
             (reasons.empty() ? "" : reasons + ")") +
             (since == 0 ? ""
                         : "; of " + std::to_string(since) +
                               " another message completed the operation since: `hapax dead list` "
                               "names them, `dead discard` ends them"));
}

void print_outbox(const Json& outbox, const std::string& options) {
  if (outbox.at("topics").empty() && outbox.at("halts").empty()) return;
  print_line(outbox_line(outbox) + "; `hapax outbox list` shows the topics");
  print_outbox_halts(outbox.at("halts"), options);
}

// `options`: of the commands that end a halt.
void print_status(const Json& status, const std::string& options) {
  print_line("group " + cell(status.at("group")) +
             (status.at("members").is_null() ? ""
                                             : ": " + cell(status.at("group_state")) +
                                                   ", members: " + cell(status.at("members"))));
  if (!status.at("kafka_error").is_null())
    print_line("Kafka does not answer: " + cell(status.at("kafka_error")));
  print_partitions(status);
  if (!status.at("halts").empty()) std::printf("\n");
  print_halts(status.at("halts"), "hapax resume" + options);
  print_waiting(status.at("waiting"));
  std::printf("\n");
  print_dead(status.at("dead_letters"));
  print_outbox(status.at("outbox"), options);
  if (!status.at("calls").is_null()) print_line(calls_line(status.at("calls")));
}

// For scripts: whether an operator must look.
ExitCode code_of(const Json& status) {
  if (!status.at("kafka_error").is_null()) return kUnreachable;
  const bool gone = std::ranges::any_of(
      status.at("partitions"), [](const Json& row) { return row.at("state") == kOwnerIsGone; });
  const bool halted = !status.at("halts").empty() || !status.at("outbox").at("halts").empty();
  return gone || halted || !status.at("refused_topics").empty() ? kFailed : kDone;
}

ExitCode status(const StatusOptions& options) {
  const config::Config config = load(options.config);
  observe::log::set_up(observe::log::Level::error, observe::log::Format::text);
  store::Session session = open_store(config);
  // Never ended: librdkafka 2.0.2 would wait without bound for a group that no broker describes.
  static Readers& readers = *new Readers(config);
  const bool redraw = isatty(STDOUT_FILENO) != 0 && !options.json;
  for (;;) {
    const Json now = gather(config, session, readers);
    if (options.watch > 0 && redraw) std::fputs("\x1b[H\x1b[2J", stdout);
    if (options.json) {
      std::printf("%s\n", now.dump(options.watch > 0 ? -1 : 2).c_str());  // watched: a line each
    } else {
      print_status(now, " -c " + options.config.path + " --url \"$OPERATOR\" ");
    }
    if (options.watch <= 0) return code_of(now);
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::duration<double>(options.watch));  // ^C ends it
    if (!redraw && !options.json) std::printf("\n");
  }
}

}  // namespace

void add_status(CLI::App& app, CommandLine& line) {
  auto* const command = app.add_subcommand(
      "status",
      "Show the state of the group: partitions, lag, halts, retries, dead letters, outbox");
  const auto options = std::make_shared<StatusOptions>();
  add_config(*command, options->config);
  command->add_flag("--json", options->json, "For programs; with --watch a line each");
  command->add_option("--watch", options->watch, "Again every so many seconds, until ^C")
      ->check(CLI::Range(0.1, 86'400.0));
  command->footer(
      "LAG is Kafka's: end minus committed. \"?\" is not known, \"-\" is none.\n"
      "\"owner is gone\": no member of the group has the partition, and its worker did not leave.\n"
      "\"refused\": Kafka does not let the user of kafka.* read the topic.\n"
      "Exit code 1 where something is halted, where an owner is gone, or where a route's topic "
      "cannot\n"
      "be read; 4 where Kafka or PostgreSQL does not answer; else 0, also with lag and dead "
      "letters.\n"
      "Examples:\n"
      "  hapax status -c worker.json --watch 2\n"
      "  hapax status -c worker.json --json | jq '.partitions[] | select(.lag > 1000)'");
  command->callback([&line, options] { line.command = [options] { return status(*options); }; });
}

}  // namespace hapax::app
