// What the `hapax dead` commands share: which letters are meant, and who orders what.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/letter_orders.hpp"
#include "cli/output.hpp"
#include "inspect/letters.hpp"
#include "store/operator/dead_letter_orders.hpp"
#include "store/operator/inspect.hpp"

namespace hapax::app {

// The options of a filter.
void add_filter(CLI::App& command, LetterFilter& filter);
// The ids, which `list` does not have.
void add_which(CLI::App& command, LetterFilter& filter);

// A session for these commands. Throws: Stop(kUnreachable), also on a schema without replays.
store::Session open_letters(const config::Config& config, const std::string& url = {});

// An order about letters: by whom, why, which.
struct OrderOptions {
  ConfigOption config;
  LetterFilter filter;
  std::string url, who, why;
  bool all = false, yes = false, dry_run = false, json = false;
};
void add_order(CLI::App& command, OrderOptions& options);

// The letters that an order is about, as of its beginning.
struct Ordered {
  store::OpenLetters letters;
  std::size_t count = 0;
  std::size_t ended = 0;  // named by id, and ended already; each was printed
  // Fit, but are left out, because an operator has skipped them and the order does not name them.
  std::size_t skipped = 0;
};
// Looks the letters up; with --dry-run prints them. `skipped`: also those that an operator has
// skipped, though the order does not name them.
// Throws: Stop if none is named, or one that does not exist or is another group's; or as
// letters_to_order().
Ordered look_up(store::Session& session, const std::string& group, const OrderOptions& options,
                bool skipped = false);

// Throws: Stop(kUsage) if no person is named.
store::Order order_of(const OrderOptions& options, const std::string& group);

// Asks on a terminal. Throws: Stop if the answer is no, or --yes is missing in a pipe.
void confirm(const OrderOptions& options, const std::string& question);

void add_dead_replay(CLI::App& dead, CommandLine& line);
void add_dead_discard(CLI::App& dead, CommandLine& line);
void add_dead_export(CLI::App& dead, CommandLine& line);

}  // namespace hapax::app
