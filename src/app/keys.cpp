// hapax keys show|list|forget: the idempotency table.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "cli/operator.hpp"
#include "cli/output.hpp"
#include "cli/store_access.hpp"
#include "flow/stored_response.hpp"
#include "inspect/key_story.hpp"
#include "key/key_text.hpp"
#include "store/operator/inspect.hpp"
#include "store/operator/operator.hpp"
#include "store/worker/checkpoints.hpp"

namespace hapax::app {
namespace {

struct KeysOptions {
  ConfigOption config;
  std::string key;
  store::OptionalText scope, tenant, status;
  std::string older_than, from;
  std::vector<std::string> after;  // key, scope, tenant
  int limit = 50;
  bool json = false;
  OperatorOptions change;
};

// Looks first for the stored text, because all other commands print that. Then takes it as raw
// bytes.
Json find_keys(store::Session& session, const KeysOptions& options,
               const store::OptionalText& scope, const store::OptionalText& tenant) {
  Json found = store::read_keys(session, options.key, scope, tenant);
  const std::string encoded = key::encode_key(options.key);
  if (found.empty() && encoded != options.key)
    found = store::read_keys(session, encoded, scope, tenant);
  return found;
}

void print_key(const Json& row) {
  const auto line = [](const char* name, const std::string& value) {
    print_line(std::string(name) + value);
  };
  line("key          ", cell(row.at("key")));
  line("scope        ", cell(row.at("scope")));
  if (row.at("tenant") != "") line("tenant       ", cell(row.at("tenant")));
  line("status       ", cell(row.at("status")));
  line("message      ", coordinates_cell(row) + " (group " + cell(row.at("group_id")) +
                            ", generation " + cell(row.at("generation")) + ")");
  if (!row.at("fingerprint").is_null())
    line("fingerprint  ", cell(row.at("fingerprint_rule")) + " " + cell(row.at("fingerprint")));
  line("result       ", cell(row.at("result")));
  if (!row.at("error").is_null()) line("error        ", cell(row.at("error")));
  line("created      ", time_cell(row.at("created_at")));
  line("updated      ", time_cell(row.at("updated_at")));
  line("expires      ", time_cell(row.at("expires_at")));
}

// Throws: Stop(kFailed) if there is none, with the scopes and tenants that have the key.
Json need_keys(store::Session& session, const KeysOptions& options) {
  Json found = find_keys(session, options, options.scope, options.tenant);
  if (found.empty()) {
    const Json elsewhere = find_keys(session, options, {}, {});
    throw Stop(kFailed,
               "no key \"" + options.key + "\"" +
                   (elsewhere.empty() ? std::string(" is stored: it never took effect, or "
                                                    "retention has removed it")
                                      : " there; it is stored in " + key_places(elsewhere)));
  }
  return found;
}

ExitCode show(const KeysOptions& options) {
  store::Session session = open_store(load_worker_or_gate(options.config));
  const Json found = need_keys(session, options);
  if (options.json) {
    print_json(found);
    return kDone;
  }
  bool first = true;
  for (const Json& row : found) {
    if (!std::exchange(first, false)) std::printf("\n");
    print_key(row);
  }
  return kDone;
}

// A completed key with an error is that of a call that was refused or given up (end_call.sql).
std::string effect_of_forgetting(const Json& row) {
  if (row.at("status") != "completed") return "the next message with this key runs";
  const auto answer = answer_to_request(row);
  if (answer && flow::is_acceptance(*answer))
    return "it was accepted; the next request with this key is accepted again. If it is the same "
           "one and a worker has completed it, nothing runs again";
  if (answer && answer->status >= 400)
    return "it was answered " + std::to_string(answer->status) +
           "; the next request with this key runs";
  if (row.at("error").is_null())
    return "the operation took effect; the next message with this key does it again";
  const bool given_up = cell(row.at("error")).starts_with("given up by ");
  return std::string(given_up ? "its call was given up: nothing was booked, though the call may "
                                "have happened"
                              : "the other side refused its call, so nothing was booked") +
         "; the next message with this key calls again";
}

// The offset is one of the log that the key's message was in.
std::string how_it_comes_again(store::Session& session, const Json& row) {
  const store::TopicPartition id{row.at("topic"), row.at("partition").get<std::int32_t>()};
  const auto checkpoint = store::read_checkpoint(session, row.at("group_id"), id);
  const std::string place = cell(row.at("topic")) + "/" + cell(row.at("partition"));
  if (!checkpoint)
    return "Its message does not come again by itself: the group has no checkpoint of " + place;
  if (row.at("generation") != checkpoint->generation)
    return "Its message does not come again by itself: it is of an earlier log of the topic";
  return "To have its message again: if the checkpoint has passed it, hapax offsets rewind " +
         place + " --to " + cell(row.at("kafka_offset")) +
         "; else restart the worker of the partition";
}

ExitCode forget(const KeysOptions& options) {
  const config::Config config = load_worker_or_gate(options.config);
  store::Session session = open_store(config, options.change.url);
  return change(operator_rights(), [&] {
    const Json found = need_keys(session, options);
    if (found.size() > 1)
      throw Stop(kUsage,
                 "the key is stored in " + key_places(found) + ": name --scope and --tenant");
    const Json& row = found[0];
    print_key(row);
    const store::KeyName key{row.at("key"), row.at("scope"), row.at("tenant")};
    const std::string who = operator_name(options.change.who);
    store::forget_key(session, key, row, who, options.change.why, true);
    if (options.change.dry_run) {
      print_line("dry run: nothing was changed");
      return kDone;
    }
    confirm(options.change, "forget", effect_of_forgetting(row));
    store::forget_key(session, key, row, who, options.change.why, false);
    print_line("forgotten");
    if (row.at("generation") != 0 &&
        std::ranges::count(config.routes, row.at("topic").get<std::string>(),
                           &config::Route::topic) > 0 &&
        row.at("group_id") == group_of(config))
      print_line(how_it_comes_again(session, row));
    return kDone;
  });
}

ExitCode list(const KeysOptions& options) {
  store::KeyFilter filter;
  filter.from = options.from;
  if (!options.after.empty()) {
    filter.from = options.after[0];
    filter.behind.emplace(options.after[1], options.after[2]);
  }
  filter.status = options.status;
  filter.scope = options.scope;
  filter.tenant = options.tenant;
  filter.limit = options.limit;
  if (!options.older_than.empty())
    filter.older_than = duration_option("--older-than", options.older_than);
  store::Session session = open_store(load_worker_or_gate(options.config));
  const Json page = key_page(session, filter);
  if (options.json) {
    print_json(page);
    return kDone;
  }
  Table table({"KEY", "SCOPE", "TENANT", "STATUS", "MESSAGE", "UPDATED", "ERROR"});
  for (const Json& row : page.at("keys"))
    table.add({cell(row.at("key")), cell(row.at("scope")), cell(row.at("tenant")),
               cell(row.at("status")) +
                   (row.at("answered").is_null() ? "" : ", answered " + cell(row.at("answered"))),
               coordinates_cell(row), time_cell(row.at("updated_at")),
               cut(cell(row.at("error")), 60)});
  if (table.empty()) {
    print_line("no key fits");
  } else {
    table.print();
  }
  const Json& next = page.at("next");
  if (const Json& after = page.at("after"); !after.is_null()) {
    std::string more = "more: --after";
    for (const Json& word : after) more += " " + shell_word(cell(word));
    print_line(more);
  } else if (!next.is_null()) {
    print_line("looked at " + std::to_string(store::kMaxScan) + " keys; go on with --from " +
               shell_word(cell(next)));
  }
  return kDone;
}

}  // namespace

void add_keys(CLI::App& app, CommandLine& line) {
  auto* const command = app.add_subcommand("keys", "The idempotency table");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  hapax keys show -c worker.json payment-17\n"
      "  hapax keys show -c worker.json 'payment-17' --scope payments --json\n"
      "  hapax keys list -c worker.json --status failed --older-than 1h\n"
      "  hapax keys forget -c worker.json --url $OPERATOR payment-17 --why 'booked on a wrong "
      "account'");
  const auto options = std::make_shared<KeysOptions>();
  const auto add = [&](const char* name, const char* what, ExitCode (*action)(const KeysOptions&)) {
    auto* const sub = command->add_subcommand(name, what);
    add_config(*sub, options->config);
    sub->add_option("--scope", options->scope, "Only this scope");
    sub->add_option("--tenant", options->tenant, "Only this tenant");
    sub->callback([&line, options, action] {
      line.command = [options, action] { return action(*options); };
    });
    return sub;
  };
  auto* const showing =
      add("show", "Show a key: status, fingerprint, message, result, times", show);
  auto* const forgetting = add("forget", "Let the next message with this key run again", forget);
  for (auto* const sub : {showing, forgetting})
    sub->add_option("KEY", options->key, "As hapax prints it, or as the producer sends it")
        ->required();
  add_operator(*forgetting, options->change);
  auto* const listing =
      add("list", "List keys in their order; reads at most 100,000 and shows how to go on", list);
  for (auto* const sub : {showing, listing}) sub->add_flag("--json", options->json, "For programs");
  listing->add_option("--status", options->status, "Only this status")
      ->check(
          CLI::IsMember({"completed", "failed", "forgotten", "started", "answered", "unknown"}));
  listing->add_option("--older-than", options->older_than, "Unchanged for so long: 90s, 1h, 7d");
  auto* const from = listing->add_option("--from", options->from, "Begin at this key");
  listing->add_option("--after", options->after, "Go on behind this KEY SCOPE TENANT")
      ->expected(3)
      ->excludes(from);
  listing->add_option("--limit", options->limit, "At most so many")->check(CLI::Range(1, 10'000));
}

}  // namespace hapax::app
