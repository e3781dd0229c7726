#include "inspect/outbox_state.hpp"

#include <algorithm>

#include "observe/escape.hpp"
#include "store/operator/inspect.hpp"

namespace hapax::app {

Json outbox_state(store::Session& session, const std::string& group) {
  Json topics = store::read_outbox_state(session, group);
  Json halts = store::read_outbox_halts(session, group);
  std::int64_t unsent = 0;
  Json oldest;
  for (const Json& topic : topics) {
    unsent += topic.at("unsent").get<std::int64_t>();
    const Json& age = topic.at("oldest_seconds");
    if (oldest.is_null() || age > oldest) oldest = age;
  }
  for (Json& halt : halts) {
    halt["record_key"] = bytes_json(bytes_of_hex(halt.at("record_key")));
    halt["decisions"] = halt.at("record").is_null() ? "retry" : "retry, skip";
  }
  return {{"unsent", unsent},
          {"oldest_seconds", oldest},
          {"topics", std::move(topics)},
          {"halts", std::move(halts)}};
}

Json outbox_records(store::Session& session, const std::string& group, const std::string& topic,
                    std::int64_t above, int limit) {
  Json records = store::list_outbox(session, group, topic, above, limit);
  const bool full = static_cast<int>(records.size()) == limit;
  const Json next = full ? records.back().at("id") : Json();
  for (Json& record : records)
    record["record_key"] = bytes_json(bytes_of_hex(record.at("record_key")));
  return {{"records", std::move(records)}, {"next", next}};
}

std::optional<store::OutboxHeaders> outbox_headers(const Json& record) {
  try {
    return store::outbox_headers_of(record.at("headers").dump());
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

Json outbox_record_json(Json record) {
  for (const char* const name : {"record_key", "payload"})
    record[name] = bytes_json(bytes_of_hex(record.at(name)));
  const auto read = outbox_headers(record);
  if (!read) return record;
  Json headers = Json::array();
  for (const auto& [name, value] : *read)
    headers.push_back({{"name", name}, {"value", bytes_json(value)}});
  record["headers"] = std::move(headers);
  return record;
}

Json outbox_decided_json(const store::OutboxDecided& decided, bool dry_run) {
  Json records = Json::array();
  for (const Json& record : decided.records) records.push_back(outbox_record_json(record));
  Json halts = decided.halts;
  for (Json& halt : halts) halt["record_key"] = bytes_json(bytes_of_hex(halt.at("record_key")));
  return {{"halts", std::move(halts)},
          {"records", std::move(records)},
          {"forgotten_cluster", decided.cluster.empty() ? Json() : Json(decided.cluster)},
          {"dry_run", dry_run}};
}

std::string not_halted(store::Session& session, const std::string& group,
                       const std::string& which) {
  std::string there;
  const Json state = outbox_state(session, group);
  for (const Json& halt : state.at("halts"))
    there += "\n  " + halted_thing(halt) + "  " + cell(halt.at("reason"));
  return which + " is not halted" +
         (there.empty() ? "; nothing in the outbox of group " + group + " is"
                        : "; of group " + group + " these are:" + there);
}

std::string halted_thing(const Json& halt) {
  const std::string topic = cell(halt.at("topic"));
  if (halt.at("record").is_null()) return "topic " + topic;
  const Json& key = halt.at("record_key");
  return "record " + cell(halt.at("record")) + " of " + topic + " (key " +
         (key.is_null() ? "null"
          : !key.contains("text")
              ? "base64 " + cell(key.at("base64"))
              : observe::quote_for_terminal(key.at("text").get<std::string>())) +
         ")";
}

void print_outbox_halts(const Json& halts, const std::string& options) {
  for (const Json& halt : halts) {
    const bool topic = halt.at("record").is_null();
    const std::string which = cell(halt.at(topic ? "topic" : "record"));
    print_line("HALT  " + halted_thing(halt) + " halted since " + cell(halt.at("since")) + " by " +
               cell(halt.at("halted_by")) + ": " + cell(halt.at("reason")));
    print_line("      " + cell(halt.at("detail")));
    print_line("      end it: hapax outbox retry" + options + which + " --why 'what was done'");
    if (!topic)
      print_line("      or never send it: hapax outbox skip" + options + which +
                 " --why 'why it may be missing'");
  }
}

std::string outbox_line(const Json& state) {
  const bool more = std::ranges::any_of(
      state.at("topics"), [](const Json& topic) { return topic.at("unsent") > store::kMaxCount; });
  return "outbox: " + std::string(more ? "more than " : "") +
         std::to_string(state.at("unsent").get<std::int64_t>() - (more ? 1 : 0)) + " unsent" +
         (state.at("oldest_seconds").is_null()
              ? ""
              : ", the oldest for " + cell(state.at("oldest_seconds")) + "s");
}

}  // namespace hapax::app
