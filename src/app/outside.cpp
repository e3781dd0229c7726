// hapax outside list|decide: shows calls to the outside that are not done, and takes operators'
// decisions on them.
#include <CLI/CLI.hpp>

#include "cli/call_orders.hpp"
#include "cli/command.hpp"
#include "cli/operator.hpp"
#include "cli/output.hpp"
#include "cli/store_access.hpp"
#include "store/operator/outside_orders.hpp"

namespace hapax::app {
namespace {

using store::CallDecision;

struct OutsideOptions {
  ConfigOption config;
  std::string status;
  int limit = 50;
  bool json = false;
};

// CLI11 gives this for --happened without a value. It is not JSON.
constexpr const char* kKeptAnswer = "kept";

struct DecideOptions {
  ConfigOption config;
  OperatorOptions change;
  std::string key, scope, tenant;
  store::OptionalText answer;
  std::optional<std::int64_t> token;
  bool happened = false, did_not_happen = false, give_up = false;
};

// The kept answer; or, if the call has come a part of its way, the names of the steps that are
// done.
std::string answer_cell(const Json& call) {
  const Json& steps = call.at("steps");
  if (!call.at("answer").is_null() || steps.is_null()) return cell(call.at("answer"));
  std::string names;
  for (const auto& [name, answer] : steps.items())
    names += (names.empty() ? "steps done: " : ", ") + cell(Json(name));
  return names;
}

ExitCode list_outside(const OutsideOptions& options) {
  const config::Config config = load(options.config);
  store::Session session = open_store(config);
  const Json calls =
      store::list_calls(session, call_scopes(config), call_filter(options.status), options.limit);
  if (options.json) {
    print_json(calls);
    return kDone;
  }
  Table table({"KEY", "SCOPE", "TENANT", "STATUS", "MESSAGE", "CALLED", "CALLS", "TOKEN", "BY",
               "LETTER", "ANSWER", "ERROR"});
  for (const Json& call : calls)
    table.add({cell(call.at("key")), cell(call.at("scope")), cell(call.at("tenant")),
               cell(call.at("status")), coordinates_cell(call), time_cell(call.at("called_at")),
               cell(call.at("calls")), cell(call.at("token")),
               call.at("may_call") == true ? cell(call.at("worker")) : "-",
               cell(call.at("dead_letter")), cut(answer_cell(call), 40),
               cut(cell(call.at("error")), 60)});
  if (table.empty())
    print_line(options.status.empty()    ? "no call waits for a decision"
               : options.status == "all" ? "no call is open"
                                         : "no call is " + options.status);
  else
    table.print();
  return kDone;
}

CallDecision decision_of(const DecideOptions& options, const config::Config& config,
                         const std::string& scope) {
  CallDecision decision = call_decision(config, scope,
                                        options.did_not_happen ? CallDecision::What::did_not_happen
                                        : options.give_up      ? CallDecision::What::give_up
                                                               : CallDecision::What::happened);
  // If a script's variable is empty, that is no answer, and does not mean the kept one.
  if (options.happened && options.answer != kKeptAnswer)
    decision.answer = json_answer(options.answer.value_or(""));
  decision.who = operator_name(options.change.who);
  decision.why = options.change.why;
  return decision;
}

ExitCode decide(const DecideOptions& options) {
  if (options.happened + options.did_not_happen + options.give_up != 1)
    throw Stop(kUsage, "give one of --happened, --did-not-happen and --give-up");
  const config::Config config = load(options.config);
  const std::string scope = call_scope(config, options.scope);
  store::Session session = open_store(config, options.change.url);
  return change(operator_rights(), [&] {
    CallDecision decision = decision_of(options, config, scope);
    const store::KeyName key = call_key(session, {options.key, scope, options.tenant});
    decision.dry_run = true;  // refuses what does not fit, before the operator is asked
    decision.token = options.token;
    const Json found = store::decide_call(session, key, decision);
    const std::string effect = call_effect(decision, found, calling_scopes(config).contains(scope));
    print_line("key " + key.key + " is " + cell(found.at("status")) + " since " +
               time_cell(found.at("updated_at")) + "; message " + coordinates_cell(found) +
               ", called " + cell(found.at("calls")) + " times, token " + cell(found.at("token")) +
               ", answer " + answer_cell(found));
    if (options.change.dry_run) {
      print_line("dry run: nothing was changed");
      return kDone;
    }
    confirm(options.change, "decide", effect);
    decision.dry_run = false;
    decision.token = found.at("token").get<std::int64_t>();
    store::decide_call(session, key, decision);
    print_line("decided: " + effect);
    return kDone;
  });
}

}  // namespace

void add_outside(CLI::App& app, CommandLine& line) {
  auto* const command =
      app.add_subcommand("outside", "Calls to the outside that are not done; docs/outside.md");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  hapax outside list -c worker.json\n"
      "  hapax outside decide -c worker.json --url $OPERATOR payment-17 --why 'the gateway shows "
      "it' "
      "--happened '{\"charge\": \"ch_1\"}'\n"
      "  hapax outside decide -c worker.json --url $OPERATOR payment-18 --why 'the gateway has no "
      "charge' --did-not-happen");
  auto* const listing =
      command->add_subcommand("list",
                              "Show calls whose outcome is unknown, and those that no worker has, "
                              "oldest first");
  const auto options = std::make_shared<OutsideOptions>();
  add_config(*listing, options->config);
  listing->add_option("--status", options->status, "Instead: all calls of this status")
      ->check(CLI::IsMember({"started", "answered", "unknown", "all"}));
  listing->add_option("--limit", options->limit, "At most so many")->check(CLI::Range(1, 10'000));
  listing->add_flag("--json", options->json, "For programs");
  listing->callback(
      [&line, options] { line.command = [options] { return list_outside(*options); }; });

  auto* const deciding = command->add_subcommand("decide", "Decide what became of a call");
  const auto decided = std::make_shared<DecideOptions>();
  add_config(*deciding, decided->config);
  deciding->add_option("KEY", decided->key, "As `list` prints it")->required();
  deciding->add_option("--scope", decided->scope, "If several scopes call to the outside");
  deciding->add_option("--tenant", decided->tenant, "If the route has tenants");
  auto* const happened = deciding->add_option(
      "--happened", decided->answer,
      "It happened: book this answer (JSON), or without one the answer that came too late");
  happened->expected(0, 1)->default_str(kKeptAnswer);
  deciding->add_flag("--did-not-happen", decided->did_not_happen, "It did not: call again");
  deciding->add_flag("--give-up", decided->give_up, "Close the operation without either");
  deciding->add_option("--token", decided->token,
                       "As `list` prints it: refused if it was called or answered since");
  add_operator(*deciding, decided->change);
  deciding->callback([&line, decided, happened] {
    decided->happened = happened->count() > 0;
    line.command = [decided] { return decide(*decided); };
  });
}

}  // namespace hapax::app
