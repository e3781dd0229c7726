// hapax resume: ends a halt with the decision that fits its reason.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "app/operator.hpp"
#include "cli/command.hpp"
#include "cli/coordinates.hpp"
#include "cli/output.hpp"
#include "cli/store_access.hpp"
#include "store/operator/decisions.hpp"
#include "store/operator/resume.hpp"
#include "store/worker/checkpoints.hpp"

namespace hapax::app {
namespace {

struct ResumeOptions {
  ConfigOption config;
  OperatorOptions change;
  std::string place, decision;
};

// Columns of hapax.checkpoints, and how `status` and `offsets show` call them.
constexpr std::pair<const char*, const char*> kShown[] = {
    {"next_offset", "checkpoint"}, {"highest", "highest"},
    {"generation", "generation"},  {"epoch", "epoch"},
    {"start_as", "starts"},        {"owner", "owner"}};

std::string name_of(const store::Halt& halt) {
  return halt.topic + (halt.whole_route ? "" : "/" + std::to_string(halt.partition));
}

std::string what_is_halted(store::Session& session, const std::string& group) {
  const std::vector<store::Halt> halts = store::read_halts(session, group);
  if (halts.empty()) return "; nothing of group " + group + " is halted";
  std::string text = "; of group " + group + " these are:";
  for (const store::Halt& halt : halts)
    text += "\n  " + name_of(halt) + "  " + halt.reason + "  (" +
            store::decisions_for(halt.reason, halt.offset.has_value()) + ")";
  return text;
}

store::Resumption wanted_of(const ResumeOptions& options, const config::Config& config) {
  const auto place = parse_place(options.place);
  if (!place)
    throw Stop(kUsage, "\"" + options.place +
                           "\" is none of TOPIC, TOPIC/PARTITION, TOPIC/PARTITION/OFFSET");
  store::Resumption wanted;
  wanted.group = group_of(config);
  wanted.topic = place->topic;
  wanted.partition = place->partition;
  wanted.offset = place->offset;
  wanted.decision = options.decision;
  wanted.why = options.change.why;
  wanted.who = operator_name(options.change.who);
  for (const config::Route& route : config.routes)
    if (route.topic == wanted.topic) wanted.scope = route.key.scope;
  return wanted;
}

// A row of hapax.checkpoints or hapax.store in the words of `status` and `offsets show`.
std::string row_text(const Json& row) {
  if (!row.contains("topic")) return "database " + cell(row.contains("id") ? row.at("id") : Json());
  std::string text = cell(row.at("topic")) + "/" + cell(row.at("partition"));
  for (const auto& [column, word] : kShown)
    if (row.contains(column) && !row.at(column).is_null())
      text += std::string(", ") + word + " " + cell(row.at(column));
  return text;
}

void print(const store::Resumed& resumed) {
  for (const store::Halt& halt : resumed.halts)
    print_line("halt " + std::to_string(halt.id) + "  " +
               (halt.offset
                    ? halt.topic + "/" + std::to_string(halt.partition) + "/" +
                          std::to_string(*halt.offset) + (halt.whole_route ? " (whole route)" : "")
                    : name_of(halt)) +
               "  " + halt.reason + " since " + halt.since);
  for (const char* const name : {"before", "after", "deleted_checkpoints"})
    for (const auto& row : resumed.facts.value(name, nlohmann::json::array()))
      print_line(std::string(name) + "  " + row_text(row));
}

// Everything as it would be done, rolled back; so what does not fit is refused before anybody asks.
store::Resumed rehearse(store::Session& session, store::Resumption wanted,
                        const std::string& place) {
  wanted.dry_run = true;
  store::Resumed resumed = store::resume(session, wanted);
  if (resumed.halts.empty())
    throw Stop(kFailed, place + " is not halted" + what_is_halted(session, wanted.group));
  return resumed;
}

ExitCode resume(const ResumeOptions& options) {
  const store::Decision* const decision = store::decision_named(options.decision);
  const config::Config config = load(options.config);
  store::Resumption wanted = wanted_of(options, config);
  store::Session session = open_store(config, options.change.url);
  const bool owner = decision->fits("store_copied") && !decision->reasons.empty();
  return change(owner ? "the schema's owner" : kOperatorRights, [&] {
    const store::Resumed rehearsed = rehearse(session, wanted, options.place);
    if (options.change.dry_run) {
      print(rehearsed);
      print_line("dry run: nothing was changed");
      return kDone;
    }
    if (decision->destructive) {
      print(rehearsed);
      confirm(options.change, options.decision, std::string(decision->effect));
    }
    wanted.seen.emplace();
    for (const store::Halt& halt : rehearsed.halts) wanted.seen->push_back(halt.id);
    const store::Resumed resumed = store::resume(session, wanted);
    if (resumed.halts.empty()) throw Stop(kFailed, "another operator has ended the halt meanwhile");
    print(resumed);
    print_line("resumed: " + std::string(decision->effect) +
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
  command
      ->add_option(
          "WHERE", options->place,
          "TOPIC (all that is halted there), TOPIC/PARTITION, or TOPIC/PARTITION/OFFSET: only "
          "while it is halted at that message")
      ->required();
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
                  "--why 'topic was remade' --yes");
  command->callback([&line, options] { line.command = [options] { return resume(*options); }; });
}

}  // namespace hapax::app
