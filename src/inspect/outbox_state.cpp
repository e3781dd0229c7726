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
