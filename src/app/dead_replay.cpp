// hapax dead replay: wants second runs of dead letters, which workers then do, and waits for them.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iterator>

#include "app/dead_letters.hpp"
#include "app/replay_progress.hpp"
#include "cli/store_access.hpp"

namespace hapax::app {
namespace {

struct ReplayOptions : OrderOptions {
  std::string payload;
  bool cancel = false;
  bool no_wait = false;
};

std::optional<store::Replacement> payload_of(const ReplayOptions& options, const Ordered& ordered) {
  if (options.payload.empty()) return std::nullopt;
  if (ordered.letters.ids.size() != 1)
    throw Stop(kUsage, "--payload is for exactly one letter: name its id");
  std::ifstream file(options.payload, std::ios::binary);
  std::string payload{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw Stop(kUsage, "cannot read " + options.payload);
  return store::Replacement{std::move(payload)};
}

void print_wanted(const ReplayTally& tally) {
  print_line("wanted: " + std::to_string(tally.added));
  for (const Json& before : tally.wanted_before)
    print_line("dead letter " + cell(before.at("dead_letter")) + " is wanted already, by " +
               cell(before.at("who")) + " since " + time_cell(before.at("wanted_at")) +
               "; it runs once");
  for (const std::int64_t letter : tally.without_bytes)
    print_line("dead letter " + std::to_string(letter) +
               " is left alone: its message was more than PostgreSQL takes, or erased. Read "
               "it from Kafka, at the place that `hapax dead show` tells; then give --payload, or "
               "discard it");
}

ExitCode cancel(const ReplayOptions& options, const store::Order& order, store::Session& session,
                const Ordered& ordered) {
  LetterTally done;
  if (options.dry_run) {
    for (Json& call : calls_of(session, ordered.letters))
      if (call.at("decided") == true) done.calls.push_back(std::move(call));
  } else {
    done = cancel_all(session, order, ordered.letters);
  }
  if (options.json) {
    print_json({{"cancelled", done.changed},
                {"running", done.running},
                {"calls", done.calls},
                {"dry_run", options.dry_run}});
  } else if (options.dry_run) {
    print_line("dry run: the open replays of " + std::to_string(ordered.count) +
               " letters would be cancelled; nothing was changed");
  } else {
    print_line("cancelled: " + std::to_string(done.changed));
    if (done.running > 0)
      print_line("left alone: " + std::to_string(done.running) + ", as a worker runs them now");
  }
  if (!options.json)
    for (const std::string& line : cancel_lines(done.calls, !ordered.letters.ids.empty()))
      print_line(line);
  return done.running > 0 ? kFailed : kDone;
}

void print_outcomes(const ReplayOutcomes& outcomes) {
  print_line("replayed " + std::to_string(outcomes.ended) + ": " + outcomes.text());
  for (const Json& told : outcomes.not_completed)
    print_line("dead letter " + cell(told.at("dead_letter")) + " " + cell(told.at("outcome")) +
               ": " + cell(told.at("detail")));
  const std::size_t untold = outcomes.ended - outcomes.not_completed.size();
  if (outcomes.not_completed.size() == kMaxTold && untold > 0)
    print_line("… and perhaps more; `hapax dead show ID` tells");
}

ExitCode replay(const ReplayOptions& options) {
  const config::Config config = load(options.config);
  const store::Order order = order_of(options, group_of(config));
  store::Session session = open_letters(config, options.url);
  const Ordered ordered = look_up(session, order.group, options, options.cancel);
  if (options.cancel) return cancel(options, order, session, ordered);
  const auto payload = payload_of(options, ordered);
  const std::string count = std::to_string(ordered.count);
  ReplayTally tally;
  tally.ended = ordered.ended;
  if (!options.dry_run && ordered.count > 0) {
    confirm(options, "Run " + count + " dead letters of group " + order.group + " again?");
    tally = want_all(session, order, ordered.letters, payload);
    tally.ended += ordered.ended;
    if (payload && !tally.wanted_before.empty())
      throw Stop(kFailed, "a replay is wanted already by " +
                              cell(tally.wanted_before[0].at("who")) +
                              ", and yours was not added; `hapax dead replay --cancel` ends it");
  }
  if (!options.json) {
    if (options.dry_run) {
      print_line("dry run: " + count + " would run again; nothing was changed");
    } else if (ordered.count == 0) {
      print_line("no open dead letter of group " + order.group + " fits");
    } else {
      print_wanted(tally);
    }
  }
  ReplayOutcomes outcomes;
  const bool wait = !options.no_wait && !tally.replays.empty();
  if (wait) {
    const bool show = isatty(STDOUT_FILENO) != 0 && !options.json;
    const auto longest = std::chrono::ceil<std::chrono::seconds>(config.worker.handler_timeout);
    outcomes = await_replays(session, tally.replays, longest, show);
    if (!options.json) print_outcomes(outcomes);
  }
  if (options.json)
    print_json({{"fits", ordered.count},
                {"wanted", tally.added},
                {"wanted_before", tally.wanted_before},
                {"ended_before", tally.ended},
                {"skipped", ordered.skipped},
                {"without_bytes", tally.without_bytes},
                {"waited", wait},
                {"outcomes", Json(outcomes.counts)},
                {"not_completed", outcomes.not_completed},
                {"dry_run", options.dry_run}});
  const bool left_any = tally.ended > 0 || !tally.without_bytes.empty();
  return left_any || !outcomes.all_completed() ? kFailed : kDone;
}

}  // namespace

void add_dead_replay(CLI::App& dead, CommandLine& line) {
  auto* const command = dead.add_subcommand(
      "replay", "Let workers run dead letters again, through the same handler and key rules");
  const auto options = std::make_shared<ReplayOptions>();
  add_order(*command, *options);
  command->add_option("--payload", options->payload,
                      "A file that runs in place of the payload of the one letter named; the dead "
                      "letter keeps its own");
  command->add_flag("--no-wait", options->no_wait, "Do not wait until workers have run them");
  command->add_flag("--cancel", options->cancel, "End the replays that no worker has taken yet");
  command->footer(
      "A worker refuses a replay if the operation was completed meanwhile, or if hapax cannot "
      "know\n"
      "any more whether it was. A replay that fails is tried again by routes[].retry; if it still\n"
      "fails, the letter stays open. A letter whose message could not be kept needs --payload.\n"
      "Exit code 1 if a replay did not complete, if a letter that you named is already ended, or "
      "if one\n"
      "needs --payload.\n\n"
      "Examples:\n"
      "  hapax dead replay -c worker.json --url $OPERATOR 17 --why 'account opened'\n"
      "  hapax dead replay -c worker.json --url $OPERATOR 17 --payload fixed.json --why 'typo in "
      "amount'\n"
      "  hapax dead replay -c worker.json --url $OPERATOR --reason attempts_exhausted --since 2h "
      "--why 'bank is "
      "back'");
  command->callback([&line, options] { line.command = [options] { return replay(*options); }; });
}

}  // namespace hapax::app
