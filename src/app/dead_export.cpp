// hapax dead export: dead letters whole, as JSON lines.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "app/dead_letters.hpp"
#include "cli/lines.hpp"
#include "cli/store_access.hpp"

namespace hapax::app {
namespace {

struct ExportOptions {
  ConfigOption config;
  LetterFilter filter;
  std::string state = "open";
  std::string file;
};

ExitCode write_all(const ExportOptions& options) {
  const config::Config config = load(options.config);
  store::DeadLetterFilter filter = list_filter(options.filter, group_of(config));
  if (options.state != "all") filter.state = options.state;
  filter.limit = filter.key ? store::kMaxScan : store::kLettersAtOnce;  // a key's come at once
  store::Session session = open_letters(config);
  Lines lines(options.file);
  std::size_t count = 0;
  const auto write = [&](const Json& letter) {
    lines.write(letter_json(letter).dump());
    ++count;
  };
  if (!options.filter.which.empty()) {
    for (const std::string& which : options.filter.which)
      write(read_letter(session, filter.group, which));
  } else {
    for (;;) {
      const store::Listed page = list_letters(session, filter);
      for (const Json& row : page.rows)
        write(store::read_dead_letter(session, row.at("id").get<std::int64_t>()));
      const bool full = static_cast<int>(page.rows.size()) == filter.limit;
      if (filter.key || (!full && page.all)) break;
      filter.before = (full ? page.rows.back().at("id") : page.last).get<std::int64_t>();
    }
  }
  lines.end();
  std::fprintf(stderr, "exported: %zu\n", count);
  return kDone;
}

}  // namespace

void add_dead_export(CLI::App& dead, CommandLine& line) {
  auto* const command = dead.add_subcommand(
      "export",
      "Write dead letters whole as JSON lines, as `show --json` prints them, newest first");
  const auto options = std::make_shared<ExportOptions>();
  add_config(*command, options->config);
  add_which(*command, options->filter);
  add_filter(*command, options->filter);
  command->add_option("--state", options->state, "open (default), replayed, discarded or all")
      ->check(CLI::IsMember({"open", "replayed", "discarded", "all"}));
  command->add_option("--out", options->file, "A file that is not there yet (default: stdout)");
  command->footer(
      "Ids take no filter beside them.\n"
      "Examples:\n"
      "  hapax dead export -c worker.json --reason rejected --out rejected.jsonl\n"
      "  hapax dead export -c worker.json --state all --since 1d | jq .error");
  command->callback([&line, options] { line.command = [options] { return write_all(*options); }; });
}

}  // namespace hapax::app
