// hapax resume: ends a halt with the decision that fits its reason.
#include <CLI/CLI.hpp>

#include "cli/command.hpp"
#include "cli/coordinates.hpp"
#include "cli/operator.hpp"
#include "cli/output.hpp"
#include "cli/resumption.hpp"
#include "cli/store_access.hpp"
#include "store/operator/decisions.hpp"

namespace hapax::app {
namespace {

struct ResumeOptions {
  ConfigOption config;
  OperatorOptions change;
  std::string place, decision;
};

store::Resumption wanted_of(const ResumeOptions& options, const config::Config& config) {
  store::Resumption wanted;
  if (!options.place.empty()) {
    const auto place = parse_place(options.place);
    if (!place)
      throw Stop(kUsage, "\"" + options.place +
                             "\" is none of TOPIC, TOPIC/PARTITION, TOPIC/PARTITION/OFFSET");
    wanted = resumption_of(config, *place);
  }
  wanted.decision = options.decision;
  wanted.why = options.change.why;
  wanted.who = operator_name(options.change.who);
  return wanted;
}

void print_lines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) print_line(line);
}

ExitCode resume(const ResumeOptions& options) {
  const store::Decision* const decision = store::decision_named(options.decision);
  if (options.place.empty() && !store::is_about_database(*decision))
    throw Stop(kUsage, "name what is halted: TOPIC, TOPIC/PARTITION or TOPIC/PARTITION/OFFSET");
  // A gate has no partitions; about the database it may decide.
  const config::Config config =
      options.place.empty() ? load_worker_or_gate(options.config) : load(options.config);
  store::Resumption wanted = wanted_of(options, config);
  store::Session session = open_store(config, options.change.url);
  return change(rights_for(*decision), [&] {
    const store::Resumed rehearsed = rehearse(session, wanted, options.place);
    if (options.change.dry_run) {
      print_lines(resumed_lines(rehearsed));
      print_line("dry run: nothing was changed");
      return kDone;
    }
    // A halt may have become one of these since the operator looked.
    const store::Decision seen = about(*decision, rehearsed.halts);
    if (seen.destructive) {
      print_lines(resumed_lines(rehearsed));
      confirm(options.change, options.decision, std::string(seen.effect));
    }
    wanted.seen.emplace();
    for (const store::Halt& halt : rehearsed.halts) wanted.seen->push_back(halt.id);
    const store::Resumed resumed = store::resume(session, wanted);
    if (resumed.halts.empty() && !options.place.empty())
      throw Stop(kFailed, "another operator has ended the halt meanwhile");
    print_lines(resumed_lines(resumed));
    print_line("resumed: " + std::string(seen.effect) +
               "; workers notice within their checkpoint_interval");
    return kDone;
  });
}

std::string decisions_help() {
  std::string text = "Decisions:\n";
  for (const store::Decision& decision : store::all_decisions()) {
    std::string reasons;
    for (const std::string_view reason : decision.reasons)
      reasons += (reasons.empty() ? "" : ", ") + std::string(reason);
    text += "  " + std::string(decision.name) + "  [" + (reasons.empty() ? "any reason" : reasons) +
            "]\n      " + std::string(decision.effect) + "\n";
  }
  return text;
}

}  // namespace

void add_resume(CLI::App& app, CommandLine& line) {
  auto* const command =
      app.add_subcommand("resume", "End a halt, with a decision, by name, and why");
  const auto options = std::make_shared<ResumeOptions>();
  add_config(*command, options->config);
  std::vector<std::string> decisions;
  for (const store::Decision& decision : store::all_decisions())
    decisions.emplace_back(decision.name);
  command->add_option(
      "WHERE", options->place,
      "TOPIC (all that is halted there), TOPIC/PARTITION, or TOPIC/PARTITION/OFFSET: only "
      "while it is halted at that message. Without it, `moved` and `copy` decide about the "
      "database");
  command->add_option("--decision", options->decision, "What to do; see below")
      ->required()
      ->check(CLI::IsMember(decisions));
  add_operator(*command, options->change);
  command->footer(decisions_help() +
                  "\nExamples:\n"
                  "  hapax resume -c worker.json --url $OPERATOR payments/3 --decision retry --why "
                  "'disk is back'\n"
                  "  hapax resume -c worker.json --url $OPERATOR payments/3/1042 --decision skip "
                  "--why 'test data' --yes\n"
                  "  hapax resume -c worker.json --url $OPERATOR payments --decision recreated "
                  "--why 'topic was remade' --yes\n"
                  "  hapax resume -c worker.json --url $OWNER --decision moved --why 'on a new "
                  "server'");
  command->callback([&line, options] { line.command = [options] { return resume(*options); }; });
}

}  // namespace hapax::app
