// `hapax check`: the triggers on hapax's tables. If one is disabled, or lost in a restore, no
// statement fails, so nothing else tells.
#include "app/findings.hpp"
#include "cli/output.hpp"
#include "store/operator/inspect.hpp"

namespace hapax::app {
namespace {

std::string title_of(const std::string& name, const std::string& table) {
  if (name == "seal") return table == "idempotency_keys" ? "seal" : "seal of " + table;
  return "trigger " + name;
}

std::string without(const std::string& name) {
  if (name == "seal") return "without it a handler can commit half a message";
  if (name == "epochs")
    return "without it a worker that takes a partition runs none of its messages. Then restart the "
           "workers";
  if (name == "forgotten")
    return "without it hapax does not note which keys it forgets, and a replay may run a message "
           "twice";
  if (name == "steps")
    return "without it the next operation under a key may get the answers of an earlier one's "
           "steps";
  if (name.starts_with("count_"))
    return "without it `hapax audit` cannot account for published records";
  return "without it rows may name others that are gone";
}

}  // namespace

void check_triggers(store::Session& session, Findings& findings) {
  for (const Json& trigger : store::read_triggers(session)) {
    const std::string name = trigger.at("name"), table = trigger.at("table");
    const Json& state = trigger.at("enabled");
    const bool enabled = state == "O" || state == "A";
    const bool whole = enabled && trigger.at("whole") == true;
    findings.judge(
        whole, title_of(name, table),
        state.is_null() ? "the trigger is gone"
        : !enabled      ? "the trigger is disabled"
        : whole         ? "the trigger is enabled"
                        : "the trigger was changed",
        "ALTER TABLE hapax." + table + " ENABLE TRIGGER " + name +
            "; if it is gone or changed, take it from `hapax migrate print`: " + without(name));
  }
}

}  // namespace hapax::app
