#include "inspect/outbox_sums.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "store/operator/inspect.hpp"

namespace hapax::app {
namespace {

constexpr int kMostRemovals = 20;

constexpr std::pair<const char*, const char*> kColumns[] = {
    {"published", "PUBLISHED"}, {"sent", "SENT"},
    {"skipped", "SKIPPED"},     {"left_to_original", "LEFT-TO-THE-ORIGINAL"},
    {"unsent", "UNSENT"},       {"removed", "REMOVED"},
    {"missing", "MISSING"}};

bool is_always_shown(const std::string& column) {
  return column == "published" || column == "sent" || column == "unsent";
}

}  // namespace

std::int64_t OutboxSums::sent(const std::string& topic) const {
  for (const Json& row : topics)
    if (row.at("topic") == topic) return row.at("sent").get<std::int64_t>();
  return 0;
}

OutboxSums read_outbox_sums(store::Session& session, const std::string& group) {
  OutboxSums sums;
  sums.topics = store::read_outbox_counts(session, group);
  sums.removals = store::read_outbox_removals(session, group, kMostRemovals);
  for (Json& row : sums.topics) {
    const auto count = [&](const char* what) { return row.at(what).get<std::int64_t>(); };
    const std::int64_t missing = count("published") - count("sent") - count("skipped") -
                                 count("left_to_original") - count("removed") - count("unsent");
    row["missing"] = missing;
    if (missing != 0 || count("removed") != 0) sums.fit = false;
  }
  return sums;
}

Json json_of(const OutboxSums& sums) {
  return {{"topics", sums.topics}, {"removals", sums.removals}, {"fit", sums.fit}};
}

void print_outbox_sums(const OutboxSums& sums, const std::string& group) {
  if (sums.topics.empty()) return;
  print_line("published by group " + group);
  std::vector<const char*> columns;
  std::vector<std::string> headings = {"TOPIC"};
  for (const auto& [name, heading] : kColumns) {
    if (!is_always_shown(name) && std::ranges::all_of(sums.topics, [name = name](const Json& row) {
          return row.at(name) == 0;
        }))
      continue;
    columns.push_back(name);
    headings.emplace_back(heading);
  }
  headings.emplace_back("COUNTED-SINCE");
  Table table(headings);
  for (const Json& row : sums.topics) {
    std::vector<std::string> cells = {cell(row.at("topic"))};
    for (const char* const name : columns) cells.push_back(cell(row.at(name)));
    cells.push_back(time_cell(row.at("since")));
    table.add(cells);
  }
  table.print();
  for (const Json& one : sums.removals)
    print_line("UNACCOUNTED  " + cell(one.at("topic")) + "  " + cell(one.at("records")) +
               " records were removed at " + time_cell(one.at("at")) +
               ", and neither sent nor skipped: " + cell(one.at("by")));
  for (const Json& row : sums.topics)
    if (const auto missing = row.at("missing").get<std::int64_t>(); missing != 0)
      print_line("UNACCOUNTED  " + cell(row.at("topic")) + "  " +
                 std::to_string(missing > 0 ? missing : -missing) +
                 (missing > 0 ? " records are gone, and no count tells why"
                              : " records more than were counted as published") +
                 ": the outbox was truncated, or its triggers were off, or rows were changed");
  if (sums.fit) print_line("every published record is accounted for");
}

}  // namespace hapax::app
