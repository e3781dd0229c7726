#include "app/dead_letters.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "cli/operator.hpp"
#include "cli/store_access.hpp"

namespace hapax::app {

void add_filter(CLI::App& command, LetterFilter& filter) {
  command.add_option("--topic", filter.topic, "Only of this topic");
  command.add_option("--handler", filter.handler, "Only of this handler");
  command.add_option("--reason", filter.reason, "Only for this reason, such as rejected");
  command.add_option("--error", filter.error, "Only with this text in the error");
  command.add_option("--since", filter.since,
                     "Given up on, the last time, not longer ago than: 15m, 1h, 7d");
  command.add_option("--until", filter.until,
                     "Given up on, the last time, at least so long ago: 15m, 1h, 7d");
  command.add_option("--key", filter.key, "Only of this idempotency key");
  command.add_option("--scope", filter.scope, "Only of this scope");
  command.add_option("--tenant", filter.tenant, "Only of this tenant; '' for none");
}

void add_which(CLI::App& command, LetterFilter& filter) {
  command.add_option("WHICH", filter.which, "Ids, or TOPIC/PARTITION/OFFSET");
}

store::Session open_letters(const config::Config& config, const std::string& url) {
  return open_store(config, url);
}

void add_order(CLI::App& command, OrderOptions& options) {
  add_config(command, options.config);
  add_which(command, options.filter);
  add_filter(command, options.filter);
  command.add_flag("--all", options.all,
                   "Every open dead letter of the group that no operator has skipped");
  command.add_option("--why", options.why, "Kept with each letter and in hapax.operator_log")
      ->required()
      ->check(reason_error);
  command.add_option("--who", options.who,
                     "Who orders it (default: $USER, or this process's user)");
  command.add_option("--url", options.url, "libpq URI of the operator's role (operator.psql)");
  command.add_flag("--yes", options.yes, "Do not ask");
  command.add_flag("--dry-run", options.dry_run, "Show which letters it is about; change nothing");
  command.add_flag("--json", options.json, "The result for programs");
}

store::Order order_of(const OrderOptions& options, const std::string& group) {
  return {group, operator_name(options.who), options.why};
}

Ordered look_up(store::Session& session, const std::string& group, const OrderOptions& options,
                bool skipped) {
  if (is_empty(options.filter) && !options.all)
    throw Stop(kUsage, "which dead letters? Name ids, a filter, or --all");
  const store::DeadLetterFilter filter = list_filter(options.filter, group);
  Ordered ordered;
  store::LetterIds ids;
  for (const std::string& which : options.filter.which) {
    const Json letter = read_letter(session, group, which);
    if (letter.at("group_id") != group)
      throw Stop(kFailed, "dead letter " + which + " is of group " + cell(letter.at("group_id")) +
                              ", the configuration's is " + group);
    ids.push_back(letter.at("id").get<std::int64_t>());
    if (letter.at("state") == "open") continue;
    ++ordered.ended;
    if (!options.json)
      print_line("dead letter " + cell(letter.at("id")) + " was " + cell(letter.at("state")) +
                 " already, at " + time_cell(letter.at("ended_at")) + " by " +
                 cell(letter.at("ended_by")) + ": " + cell(letter.at("ended_why")));
  }
  ordered.letters = letters_to_order(session, filter, std::move(ids), skipped);
  Table table({"ID", "SINCE", "MESSAGE", "REASON", "TENANT", "ERROR"});
  store::OpenLetters rest = ordered.letters;
  rest.skipped = true;  // to tell how many are left out
  for (Json page; !(page = store::page_of(session, rest)).empty();) {
    rest.above = page.back().at("id").get<std::int64_t>();
    for (const Json& row : page) {
      if (row.at("reason") == store::kSkippedByOperator && !ordered.letters.takes_skipped()) {
        ++ordered.skipped;
        continue;
      }
      ++ordered.count;
      if (!options.dry_run || options.json) continue;
      table.add({cell(row.at("id")), time_cell(row.at("created_at")), coordinates_cell(row),
                 cell(row.at("reason")), tenant_cell(row), cut(cell(row.at("error")), 80)});
    }
  }
  table.leave_out_if_empty(4);
  if (!table.empty()) table.print();
  if (ordered.skipped > 0 && !options.json)
    print_line(
        "left out: " + std::to_string(ordered.skipped) +
        " that an operator has decided to skip; to order these, name their ids, or --reason " +
        store::kSkippedByOperator);
  ordered.letters.up_to = rest.above;  // none that comes from now on
  return ordered;
}

void confirm(const OrderOptions& options, const std::string& question) {
  if (options.yes) return;
  if (isatty(STDIN_FILENO) == 0)
    throw Stop(kUsage, question + " There is no terminal to ask on: give --yes to do it");
  std::printf("%s [y/N] ", question.c_str());
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  if (answer != "y" && answer != "yes") throw Stop(kFailed, "nothing was changed");
}

}  // namespace hapax::app
