// hapax dead discard: letters that shall never run. The row stays, or a redelivery would be
// unknown.
#include <CLI/CLI.hpp>

#include "app/dead_letters.hpp"
#include "cli/store_access.hpp"

namespace hapax::app {
namespace {

ExitCode discard(const OrderOptions& options) {
  const config::Config config = load(options.config);
  const store::Order order = order_of(options, group_of(config));
  store::Session session = open_letters(config, options.url);
  const Ordered ordered = look_up(session, order.group, options);
  LetterTally done;
  const bool ids = !ordered.letters.ids.empty();
  done.calls = calls_of(session, ordered.letters);
  const std::size_t fits = ordered.count - letters_of(done.calls);
  if (!options.dry_run && fits > 0) {
    confirm(options, "Discard " + std::to_string(fits) + " dead letters of group " + order.group +
                         ", so that they are not run again?");
    done = discard_all(session, order, ordered.letters);
  }
  const std::size_t ended = ordered.ended + done.ended;
  if (options.json) {
    print_json({{"fits", fits},
                {"discarded", done.changed},
                {"running", done.running},
                {"ended_before", ended},
                {"calls_not_done", done.calls},
                {"skipped", ordered.skipped},
                {"dry_run", options.dry_run}});
  } else if (options.dry_run) {
    print_line("dry run: " + std::to_string(fits) + " would be discarded; nothing was changed");
  } else if (ordered.count == 0) {
    print_line("no open dead letter of group " + order.group + " fits");
  } else {
    print_line("discarded: " + std::to_string(done.changed));
    if (done.running > 0)
      print_line("left alone: " + std::to_string(done.running) +
                 ", as a worker runs their replay now; see `hapax dead show`");
  }
  if (!options.json)
    for (const std::string& line : discard_lines(done.calls, ids)) print_line(line);
  return done.running > 0 || ended > 0 || (ids && !done.calls.empty()) ? kFailed : kDone;
}

}  // namespace

void add_dead_discard(CLI::App& dead, CommandLine& line) {
  auto* const command = dead.add_subcommand(
      "discard", "End dead letters that shall never run; cancels their replays. The rows stay");
  const auto options = std::make_shared<OrderOptions>();
  add_order(*command, *options);
  command->footer(
      "A letter whose call to the outside is not done is left alone: first decide about the call.\n"
      "Exit code 1 if a letter that you named is left alone or already ended, or if a worker runs\n"
      "one now.\n\n"
      "Examples:\n"
      "  hapax dead discard -c worker.json --url $OPERATOR 17 18 --why 'test messages'\n"
      "  hapax dead discard -c worker.json --url $OPERATOR --reason missing_key --until 7d --why "
      "old --dry-run");
  command->callback([&line, options] { line.command = [options] { return discard(*options); }; });
}

}  // namespace hapax::app
