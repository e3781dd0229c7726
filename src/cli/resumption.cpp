#include "cli/resumption.hpp"

#include <utility>

#include "cli/command.hpp"
#include "cli/operator.hpp"
#include "cli/output.hpp"
#include "cli/store_access.hpp"
#include "store/worker/checkpoints.hpp"

namespace hapax::app {
namespace {

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

// A row of hapax.checkpoints or hapax.store in the words of `status` and `offsets show`.
std::string row_text(const Json& row) {
  if (!row.contains("topic")) return "database " + cell(row.contains("id") ? row.at("id") : Json());
  std::string text = cell(row.at("topic")) + "/" + cell(row.at("partition"));
  for (const auto& [column, word] : kShown)
    if (row.contains(column) && !row.at(column).is_null())
      text += std::string(", ") + word + " " + cell(row.at(column));
  return text;
}

}  // namespace

store::Resumption resumption_of(const config::Config& config, const Place& place) {
  store::Resumption wanted;
  wanted.group = group_of(config);
  wanted.topic = place.topic;
  wanted.partition = place.partition;
  wanted.offset = place.offset;
  for (const config::Route& route : config.routes)
    if (route.topic == wanted.topic) wanted.scope = route.key.scope;
  return wanted;
}

const char* rights_for(const store::Decision& decision) {
  return store::is_about_database(decision) ? "the schema's owner" : operator_rights();
}

store::Decision about(const store::Decision& decision, const std::vector<store::Halt>& halts) {
  for (const store::Halt& halt : halts)
    if (const store::Decision asks = decision.about(halt.reason); asks.destructive) return asks;
  return decision;
}

store::Resumed rehearse(store::Session& session, store::Resumption wanted,
                        const std::string& place) {
  wanted.dry_run = true;
  store::Resumed resumed = store::resume(session, wanted);
  if (resumed.halts.empty() && !wanted.topic.empty())
    throw Stop(kFailed, place + " is not halted" + what_is_halted(session, wanted.group));
  return resumed;
}

std::vector<std::string> resumed_lines(const store::Resumed& resumed) {
  std::vector<std::string> lines;
  for (const store::Halt& halt : resumed.halts)
    lines.push_back("halt " + std::to_string(halt.id) + "  " +
                    (halt.offset ? halt.topic + "/" + std::to_string(halt.partition) + "/" +
                                       std::to_string(*halt.offset) +
                                       (halt.whole_route ? " (whole route)" : "")
                                 : name_of(halt)) +
                    "  " + halt.reason + " since " + halt.since);
  for (const char* const name : {"before", "after", "deleted_checkpoints"})
    for (const auto& row : resumed.facts.value(name, nlohmann::json::array()))
      lines.push_back(std::string(name) + "  " + row_text(row));
  if (const auto deleted = resumed.facts.value("deleted_outbox", 0); deleted > 0)
    lines.push_back("deleted_outbox  " + std::to_string(deleted) +
                    " published records, which the original sends");
  if (const auto ended = resumed.facts.value("ended_outbox_halts", nlohmann::json::array());
      !ended.empty())
    lines.push_back("ended_outbox_halts  " + std::to_string(ended.size()) + " of these records");
  if (const auto open = resumed.facts.value("open_outbox_halts", 0); open > 0)
    lines.push_back("open_outbox_halts  " + std::to_string(open) +
                    ", which stand as before: `hapax outbox list` names the commands that end "
                    "them");
  return lines;
}

}  // namespace hapax::app
