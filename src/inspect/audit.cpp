// hapax audit: what became of every offset of a topic, and which of them nothing accounts for. Of a
// topic that the group publishes to: whether each record that was sent is there. Of each group:
// whether what it published was sent, or waits.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>

#include "cli/output.hpp"
#include "cli/store_access.hpp"
#include "inspect/accounting.hpp"
#include "inspect/outbound_accounting.hpp"
#include "inspect/outbox_sums.hpp"
#include "observe/log.hpp"

namespace hapax::app {
namespace {

struct AuditOptions {
  ConfigOption config;
  AuditWanted wanted;
  bool json = false;
};

Json unaccounted_json(const Accounting& audit) {
  Json unaccounted = Json::array();
  for (const Unaccounted& one : audit.unaccounted())
    unaccounted.push_back(
        {{"partition", one.partition}, {"offset", one.offset}, {"why", one.story}});
  return unaccounted;
}

void print_table(const Accounting& audit) {
  std::vector<Verdict> columns;
  std::vector<std::string> headings = {"PARTITION", "FROM", "TO", "CHECKPOINT"};
  for (std::size_t i = 0; i < kVerdicts; ++i) {
    const auto verdict = static_cast<Verdict>(i);
    const bool always = verdict == Verdict::completed || verdict == Verdict::unaccounted;
    if (!always && audit.sum(verdict) == 0) continue;
    columns.push_back(verdict);
    std::string& heading = headings.emplace_back(name_of(verdict));
    std::ranges::transform(heading, heading.begin(),
                           [](char c) { return c == '_' ? '-' : static_cast<char>(toupper(c)); });
  }
  Table table(headings);
  for (const Account& account : audit.accounts()) {
    const auto& checkpoint = account.standing.checkpoint;
    std::vector<std::string> cells = {std::to_string(account.partition),
                                      std::to_string(account.from), std::to_string(account.to),
                                      checkpoint ? std::to_string(*checkpoint) : "-"};
    for (const Verdict verdict : columns) cells.push_back(std::to_string(account.count(verdict)));
    table.add(cells);
  }
  std::vector<std::string> cells = {"all", "", "", ""};
  for (const Verdict verdict : columns) cells.push_back(std::to_string(audit.sum(verdict)));
  table.add(cells);
  table.print();
}

void print_remarks(const Accounting& audit, const std::string& topic) {
  for (const Account& account : audit.accounts()) {
    const std::string place = topic + "/" + std::to_string(account.partition);
    if (account.standing.other_keys) print_line(place + ": " + kOtherKeys);
    for (const LeftOut::Gap& gap : account.standing.left_out.gaps())
      if (gap.from < account.to && gap.to > account.asked_from)
        print_line(place + ": " + std::to_string(gap.from) + " to " + std::to_string(gap.to) +
                   " left out by " + gap.by.who + " at " + time_cell(gap.by.at) + " (" +
                   gap.by.cause + "): " + gap.by.why);
    if (account.standing.same_topic) print_line(place + ": " + tell_same_topic(account.standing));
    if (account.standing.halt)
      print_line(place + ": halted since " + account.standing.halt->since + ": " +
                 account.standing.halt->reason);
    if (!account.standing.checkpoint && account.log.low < account.log.high)
      print_line(place + ": group " + audit.group() +
                 " has never started here, so this proves nothing; is group.id right, and "
                 "postgres.url?");
    if (account.lost > 0)
      print_line(place + ": Kafka has deleted " + std::to_string(account.lost) +
                 " offsets before they were settled");
  }
}

void print_verdict(const Accounting& audit, const std::string& topic) {
  for (const Unaccounted& one : audit.unaccounted())
    print_line("UNACCOUNTED  " + topic + "/" + std::to_string(one.partition) + "/" +
               std::to_string(one.offset) + "  " + one.story);
  const std::int64_t total = audit.sum(Verdict::unaccounted);
  const auto told = static_cast<std::int64_t>(audit.unaccounted().size());
  if (total > told) print_line("… and " + std::to_string(total - told) + " more (--limit)");
  if (const std::string why = audit.why_nothing(); !why.empty()) {
    print_line("nothing was looked at, so this proves nothing: " + why);
  } else if (audit.proven() && audit.looked_at() == 0) {
    print_line("Kafka has no offset there, so there is nothing to account for");
  } else if (audit.proven()) {
    const std::int64_t expired = audit.sum(Verdict::expired);
    print_line("every offset is accounted for" +
               (expired == 0
                    ? std::string()
                    : "; of " + std::to_string(expired) +
                          " only the checkpoint speaks, retention has removed their keys"));
  } else if (total > 0 || audit.lost() > 0) {
    print_line(
        std::to_string(total) + " unaccounted, " + std::to_string(audit.lost()) +
        " deleted by Kafka before they were settled; `hapax explain` tells what is known of one");
  }
}

// A day without its signs, 20261101, is an offset that no log has.
template <class Accounts>
void expect_to_reach(const AuditWanted& wanted, const Accounts& accounts) {
  const auto first = parse_bound(wanted.from);
  if (first && !first->is_time &&
      std::ranges::all_of(accounts, [&](const auto& one) { return one.from < first->value; }))
    throw Stop(kUsage, "--from " + wanted.from +
                           " is an offset, and each log ends below it. A day is written as "
                           "2026-11-01");
}

// What the topic is to the group: at least one of both.
struct Audit {
  std::optional<Accounting> inbound;
  std::optional<OutboundAccounting> outbound;
  OutboxSums sums;

  bool proven() const {
    return (!inbound || inbound->proven()) && (!outbound || outbound->proven()) && sums.fit;
  }
};

// The counts are read first: what is sent later may be there, and need not.
void run(Audit& audit, const config::Config& config, store::Session& session,
         const AuditWanted& wanted) {
  const std::string& topic = wanted.topic;
  audit.sums = read_outbox_sums(session, group_of(config));
  const bool publishes =
      std::ranges::count(config.publish.topics, topic) > 0 ||
      std::ranges::count(config.routes, topic, &config::Route::dead_letter_topic) > 0 ||
      std::ranges::any_of(audit.sums.topics,
                          [&](const Json& row) { return row.at("topic") == topic; });
  asking_kafka([&] {
    if (publishes) {
      audit.outbound.emplace(config, wanted, audit.sums.sent(topic)).run();
      expect_to_reach(wanted, audit.outbound->accounts());
    }
    if (!publishes || std::ranges::count(config.routes, topic, &config::Route::topic) > 0) {
      audit.inbound.emplace(config, session, wanted).run();
      expect_to_reach(wanted, audit.inbound->accounts());
    }
  });
}

Json json_of(const Audit& audit, const std::string& topic, const std::string& group) {
  Json json = {{"topic", topic}, {"group", group}};
  if (audit.inbound) {
    json["partitions"] = Json::array();
    for (const Account& account : audit.inbound->accounts())
      json["partitions"].push_back(json_of(account));
  }
  json["proven"] = audit.proven();
  if (audit.inbound) {
    json["unaccounted_total"] = audit.inbound->sum(Verdict::unaccounted);
    json["unaccounted"] = unaccounted_json(*audit.inbound);
  }
  if (audit.outbound) json["outbound"] = json_of(*audit.outbound);
  json["published"] = json_of(audit.sums);
  return json;
}

ExitCode audit(AuditOptions options) {
  const config::Config config = load_worker_or_gate(options.config);
  observe::log::set_up(observe::log::Level::error, observe::log::Format::text);
  options.wanted.progress = !options.json;
  expect_a_range(options.wanted.from, options.wanted.to, now_ms());
  const std::string& topic = options.wanted.topic;
  const std::string& group = group_of(config);
  store::Session session = open_store(config);
  Audit audit;
  run(audit, config, session, options.wanted);
  if (options.json) {
    print_json(json_of(audit, topic, group));
    return audit.proven() ? kDone : kFailed;
  }
  if (audit.inbound) {
    print_line("topic " + topic + ", group " + group);
    print_table(*audit.inbound);
    print_remarks(*audit.inbound, topic);
    print_verdict(*audit.inbound, topic);
  }
  if (audit.outbound) {
    print_line("topic " + topic + ", published by group " + group);
    print_outbound(*audit.outbound, topic);
  }
  print_outbox_sums(audit.sums, group);
  return audit.proven() ? kDone : kFailed;
}

}  // namespace

void add_audit(CLI::App& app, CommandLine& line) {
  auto* const command = app.add_subcommand(
      "audit",
      "Account for every offset of a topic, and for every record that the group published");
  const auto options = std::make_shared<AuditOptions>();
  add_config(*command, options->config);
  command
      ->add_option("--topic", options->wanted.topic,
                   "The topic of a route, or one that handlers publish to")
      ->required();
  command->add_option("--partition", options->wanted.partition, "Only this one")
      ->check(CLI::NonNegativeNumber);
  command->add_option(
      "--from", options->wanted.from,
      "First offset; or a time in UTC, or how long ago (15m, 2h, 7d): the first message since");
  command->add_option("--to", options->wanted.to,
                      "Below this offset, or before the first message since that time");
  command->add_option("--limit", options->wanted.limit, "List at most so many unaccounted offsets");
  command->add_flag("--json", options->json, "For programs");
  command->footer(
      "Exit code 1 if one of these is true:\n"
      "- An offset is unaccounted: it is below the checkpoint, and no key, dead letter or "
      "decision\n"
      "  of an operator explains it.\n"
      "- Kafka deleted an offset before it was settled.\n"
      "- The group has never started on a partition with messages, or not on the topic at all.\n"
      "- Kafka has deleted all that the range asks for.\n"
      "- A published record was neither sent nor skipped, and does not wait.\n"
      "- In a topic that handlers publish to, a sent record is missing or comes again with other\n"
      "  contents.\n"
      "- There, with publish.transactions, a record comes again.\n\n"
      "Examples:\n"
      "  hapax audit -c worker.json --topic payments\n"
      "  hapax audit -c worker.json --topic receipts\n"
      "  hapax audit -c worker.json --topic payments --from 2026-11-01 --to 2026-12-01 --json\n"
      "  hapax audit -c worker.json --topic payments --partition 3 --from 1000 --to 2000");
  command->callback([&line, options] { line.command = [options] { return audit(*options); }; });
}

}  // namespace hapax::app
