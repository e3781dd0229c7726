// hapax status: shows the group's state, from PostgreSQL and Kafka. Live numbers of a worker are at
// its /metrics.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>
#include <thread>

#include "cli/command.hpp"
#include "cli/operator.hpp"
#include "cli/output.hpp"
#include "cli/store_access.hpp"
#include "inspect/calls_state.hpp"
#include "inspect/group_state.hpp"
#include "inspect/outbox_state.hpp"
#include "observe/log.hpp"
#include "store/operator/decisions.hpp"
#include "store/operator/inspect.hpp"

namespace hapax::app {
namespace {

struct StatusOptions {
  ConfigOption config;
  double watch = 0;
  bool json = false;
};

Json gather(const config::Config& config, store::Session& session, Readers& readers) {
  KafkaSide side = to_ask(read_group_in_store(session, group_of(config)));
  ask_kafka(config, readers, side);
  // Read after Kafka, which may have taken seconds. Otherwise a checkpoint would be older than the
  // log's end, and would look as if it did not move.
  return group_state(config, session, read_group_in_store(session, group_of(config)), side);
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

// `command`: the command that ends a halt, up to the place of the halt.
void print_halts(const Json& halts, const std::string& command) {
  for (const Json& halt : halts) {
    const bool route = halt.at("whole_route");
    const std::string place =
        cell(halt.at("topic")) + (route ? "" : "/" + cell(halt.at("partition")));
    print_line("HALT  " + place + (route ? " (whole route)" : "") + " halted since " +
               cell(halt.at("since")) + " by " + cell(halt.at("halted_by")) + ": " +
               cell(halt.at("reason")) +
               (halt.at("offset").is_null() ? "" : " at offset " + cell(halt.at("offset"))));
    std::istringstream detail(cell(halt.at("detail")));
    for (std::string line; std::getline(detail, line);) print_line("      " + line);
    const auto decisions =
        store::decisions_about(cell(halt.at("reason")), !halt.at("offset").is_null());
    const bool by_retry = decisions.front().name == "retry";
    print_line("      end it: " + command + place + " --decision " +
               (by_retry ? "retry --why 'what was done'" : "DECISION --why 'how you know'"));
    if (by_retry && decisions.size() > 1)
      print_line("      decisions: " + cell(halt.at("decisions")));
    if (by_retry) continue;
    for (const store::Decision& decision : decisions)
      print_line("      " + std::string(decision.name) + ": " + std::string(decision.effect));
  }
}

// The runs that failed, and those that ended with the process.
std::string times_failed(const Json& row) {
  const std::string crashes =
      row.at("crashes") == 0 ? "" : cell(row.at("crashes")) + "x with the process";
  if (row.at("count") == 0 && !crashes.empty()) return crashes;
  return cell(row.at("count")) + "x" + (crashes.empty() ? "" : ", " + crashes);
}

void print_waiting(const Json& waiting) {
  Table table({"WAITING FOR A RETRY", "FAILED", "NEXT TRY", "HANDLER", "LAST ERROR"});
  for (const Json& row : waiting)
    table.add({coordinates_cell(row), times_failed(row),
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

// `options`: options of the commands that end a halt.
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
  if (!status.at("halts").empty())
    print_line("      OPERATOR is the URL of a role with " + std::string(operator_rights()) +
               ", such as postgresql:///payments");
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
  static Readers& readers = *new Readers(config);
  const bool redraw = isatty(STDOUT_FILENO) != 0 && !options.json;
  for (;;) {
    const Json now = gather(config, session, readers);
    if (options.watch > 0 && redraw) std::fputs("\x1b[H\x1b[2J", stdout);
    if (options.json) {
      // With --watch, each is one line.
      std::printf("%s\n", now.dump(options.watch > 0 ? -1 : 2).c_str());
    } else {
      print_status(now, " -c " + path_word(options.config.path) + " --url \"$OPERATOR\" ");
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
      "EPOCH rises each time a worker takes the partition. It begins at a large number.\n"
      "\"owner is gone\": no member of the group has the partition, and its worker did not leave.\n"
      "\"refused\": Kafka does not let the user of kafka.* read the topic.\n"
      "Exit code 1: something is halted, an owner is gone, or a route's topic cannot be "
      "read.\nExit code 4: Kafka or PostgreSQL does not answer. Else 0, also with lag and dead "
      "letters.\n"
      "Examples:\n"
      "  hapax status -c worker.json --watch 2\n"
      "  hapax status -c worker.json --json | jq '.partitions[] | select(.lag > 1000)'");
  command->callback([&line, options] { line.command = [options] { return status(*options); }; });
}

}  // namespace hapax::app
