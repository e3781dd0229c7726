// What the `hapax dead` commands share: which letters are meant, how one is read and shown, and who
// orders what.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "store/operator/dead_letter_orders.hpp"
#include "store/operator/inspect.hpp"

namespace hapax::app {

// The options that choose letters; all that are set must fit.
struct LetterFilter {
  std::vector<std::string> which;  // ids or TOPIC/PARTITION/OFFSET
  store::OptionalText topic, handler, reason, error, key;
  std::string since, until;
};
void add_filter(CLI::App& command, LetterFilter& filter);
// The ids, which `list` does not have.
void add_which(CLI::App& command, LetterFilter& filter);
bool is_empty(const LetterFilter& filter);

// The filter without its ids. Throws: Stop(kUsage) if a duration is none.
store::DeadLetterFilter list_filter(const LetterFilter& filter, const std::string& group);

// A session for these commands. Throws: Stop(kUnreachable), also on a schema without replays.
store::Session open_letters(const config::Config& config, const std::string& url = {});

// One page newest first. A key is tried as it is stored, then as the producer sends it.
store::Listed list_letters(store::Session& session, store::DeadLetterFilter& filter);

// The letter of an id or TOPIC/PARTITION/OFFSET, bytes as hex.
// Throws: Stop(kUsage); Stop(kFailed) if there is none, saying which there is.
Json read_letter(store::Session& session, const std::string& group, const std::string& which);

// The letter as `show --json` and `export` print it.
Json letter_json(Json letter);

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
};
// Looks the letters up; with --dry-run prints them.
// Throws: Stop if none is named, or one that does not exist or is another group's.
Ordered look_up(store::Session& session, const std::string& group, const OrderOptions& options);

// Throws: Stop(kUsage) if no person is named.
store::Order order_of(const OrderOptions& options, const std::string& group);

// Asks on a terminal. Throws: Stop if the answer is no, or --yes is missing in a pipe.
void confirm(const OrderOptions& options, const std::string& question);

// Calls `order` with the ids of each page, oldest first.
// Throws: Stop(kFailed) if PostgreSQL refuses, saying whose rights it needs.
void for_each_page(store::Session& session, store::OpenLetters letters,
                   const std::function<void(const store::LetterIds&)>& order);

void add_dead_replay(CLI::App& dead, CommandLine& line);
void add_dead_discard(CLI::App& dead, CommandLine& line);
void add_dead_export(CLI::App& dead, CommandLine& line);

}  // namespace hapax::app
