// hapax outbox list|show|retry|skip: records that handlers published and Kafka does not have yet.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "cli/command.hpp"
#include "cli/operator.hpp"
#include "cli/output.hpp"
#include "cli/store_access.hpp"
#include "inspect/outbox_state.hpp"
#include "observe/escape.hpp"
#include "store/operator/inspect.hpp"
#include "store/operator/outbox_orders.hpp"

namespace hapax::app {
namespace {

struct OutboxOptions {
  ConfigOption config;
  std::string topic;
  std::int64_t above = 0;
  int limit = 50;
  std::int64_t id = 0;
  bool payload = false;
  bool json = false;
};

struct OutboxOrderOptions {
  ConfigOption config;
  OperatorOptions change;
  std::string which;
  std::vector<std::int64_t> ids;
  bool new_cluster = false;
  bool json = false;
};

std::string origin_cell(const Json& record) {
  return cell(record.at("source_topic")) + "/" + cell(record.at("source_partition")) + "/" +
         cell(record.at("source_offset"));
}

std::string held_cell(const Json& held) {
  return held.is_null() ? "" : cell(held) == "record" ? "refused" : "its " + cell(held) + " waits";
}

std::string shown_bytes(const std::optional<std::string>& bytes) {
  return bytes ? observe::quote_for_terminal(*bytes) : "null";
}

ExitCode list_topics(const OutboxOptions& options, store::Session& session,
                     const std::string& group) {
  const Json state = outbox_state(session, group);
  if (options.json) {
    print_json(state);
    return kDone;
  }
  print_line(outbox_line(state) + " (group " + group + ")");
  Table table({"TOPIC", "UNSENT", "OLDEST", "SINCE", "AGE"});
  for (const Json& row : state.at("topics"))
    table.add({cell(row.at("topic")),
               row.at("unsent") > store::kMaxCount ? "more than " + std::to_string(store::kMaxCount)
                                                   : cell(row.at("unsent")),
               cell(row.at("oldest")), time_cell(row.at("since")),
               cell(row.at("oldest_seconds")) + "s"});
  if (!table.empty()) table.print();
  print_outbox_halts(state.at("halts"),
                     " -c " + path_word(options.config.path) + " --url \"$OPERATOR\" ");
  return kDone;
}

ExitCode list_records(const OutboxOptions& options, store::Session& session,
                      const std::string& group) {
  const Json listed = outbox_records(session, group, options.topic, options.above, options.limit);
  if (options.json) {
    print_json(listed);
    return kDone;
  }
  const Json& next = listed.at("next");
  Table table({"ID", "SINCE", "FROM", "KEY", "BYTES", "HALTED", "IDEMPOTENCY-KEY"});
  for (const Json& record : listed.at("records")) {
    const Json& key = record.at("record_key");
    table.add({cell(record.at("id")), time_cell(record.at("created_at")), origin_cell(record),
               cut(key.is_null() ? "-" : cell(key.begin().value()), 40),
               cell(record.at("payload_bytes")), held_cell(record.at("held")),
               cell(record.at("idempotency_key"))});
  }
  if (table.empty())
    print_line("group " + group + " has no unsent record for " + options.topic);
  else
    table.print();
  if (!next.is_null()) print_line("more: --above " + cell(next));
  return kDone;
}

ExitCode list_outbox(const OutboxOptions& options) {
  const config::Config config = load_worker_or_gate(options.config);
  store::Session session = open_store(config);
  return options.topic.empty() ? list_topics(options, session, group_of(config))
                               : list_records(options, session, group_of(config));
}

void print_record(const Json& record) {
  const auto line = [](const char* name, const std::string& value) {
    print_line(std::string(name) + value);
  };
  line("id               ", cell(record.at("id")));
  line("topic            ", cell(record.at("topic")));
  line("published        ", time_cell(record.at("created_at")) + " by " + origin_cell(record) +
                                " (group " + cell(record.at("group_id")) + ", generation " +
                                cell(record.at("source_generation")) + ")");
  if (!record.at("held").is_null()) line("halted           ", held_cell(record.at("held")));
  line("idempotency-key  ", cell(record.at("idempotency_key")));
  line("record key       ", shown_bytes(bytes_of_hex(record.at("record_key"))));
  if (const auto headers = outbox_headers(record)) {
    for (const auto& [name, value] : *headers)
      line("header           ", observe::quote_for_terminal(name) + ": " + shown_bytes(value));
  } else {
    line("headers          ", "unreadable: " + shown_bytes(record.at("headers").dump()));
  }
  line("payload          ", shown_bytes(bytes_of_hex(record.at("payload"))));
}

ExitCode show_outbox(const OutboxOptions& options) {
  const config::Config config = load_worker_or_gate(options.config);
  store::Session session = open_store(config);
  const std::string& group = group_of(config);
  const Json record = store::read_outbox_record(session, group, options.id);
  if (record.is_null())
    throw Stop(kFailed, "group " + group + " has no unsent record " + std::to_string(options.id) +
                            "; a record is removed once Kafka has it. `hapax explain` finds what a "
                            "message has published, and the message behind a record in Kafka");
  if (options.payload) {
    print_payload(bytes_of_hex(record.at("payload")));
  } else if (options.json) {
    print_json(outbox_record_json(record));
  } else {
    print_record(record);
    if (record.at("source_generation") == 0)
      print_line("its message      a request to the gate's route " +
                 cell(record.at("source_topic")));
    else
      print_line("its message      hapax explain -c " + path_word(options.config.path) + " " +
                 origin_cell(record));
  }
  return kDone;
}

store::OutboxOrder order_of(const OutboxOrderOptions& options, const std::string& group) {
  return {group, operator_name(options.change.who), options.change.why, options.change.dry_run};
}

void print_decided(const Json& decided) {
  if (const Json& cluster = decided.at("forgotten_cluster"); !cluster.is_null())
    print_line("the group's records went to Kafka cluster " + cell(cluster));
  for (const Json& halt : decided.at("halts"))
    print_line("halt " + cell(halt.at("id")) + "  " + halted_thing(halt) + "  " +
               cell(halt.at("reason")) + " since " + cell(halt.at("since")));
  for (const Json& record : decided.at("records"))
    print_line("record " + cell(record.at("id")) + "  " + cell(record.at("topic")) + ", from " +
               origin_cell(record) + ", idempotency-key " + cell(record.at("idempotency_key")));
}

// The open halts behind which those records, or others of their keys, still wait.
Json still_halted(store::Session& session, const std::string& group,
                  const store::OutboxDecided& decided) {
  const auto holds = [&](const Json& halt, const Json& all) {
    return std::ranges::any_of(all, [&](const Json& one) {
      return one.at("topic") == halt.at("topic") &&
             (halt.at("record").is_null() ||
              (!halt.at("record_key").is_null() && one.at("record_key") == halt.at("record_key")));
    });
  };
  Json still = Json::array();
  for (Json& halt : store::read_outbox_halts(session, group)) {
    if (!holds(halt, decided.halts) && !holds(halt, decided.records)) continue;
    halt["record_key"] = bytes_json(bytes_of_hex(halt.at("record_key")));
    still.push_back(std::move(halt));
  }
  return still;
}

// `goes_on`: what happens if nothing else holds these records.
ExitCode done_with(const OutboxOrderOptions& options, store::Session& session,
                   const std::string& group, const store::OutboxDecided& decided,
                   const std::string& done, const std::string& goes_on) {
  const Json json = outbox_decided_json(decided, options.change.dry_run);
  if (options.json) {
    print_json(json);
    return kDone;
  }
  print_decided(json);
  if (options.change.dry_run) {
    print_line("dry run: nothing was changed");
    return kDone;
  }
  const Json still = still_halted(session, group, decided);
  print_line(done + "; " + (still.empty() ? goes_on : "these halts still hold records up:"));
  print_outbox_halts(still, " -c " + path_word(options.config.path) + " --url \"$OPERATOR\" ");
  return kDone;
}

std::vector<store::SeenHalt> seen_of(const store::OutboxDecided& decided) {
  std::vector<store::SeenHalt> seen;
  for (const Json& halt : decided.halts)
    seen.push_back({halt.at("id").get<std::int64_t>(), halt.at("reason").get<std::string>()});
  return seen;
}

// A halt may have become one of these since the operator looked.
void ask_to_retry(const OutboxOrderOptions& options, const store::OutboxDecided& decided) {
  const bool may_repeat = std::ranges::any_of(decided.halts, [](const Json& halt) {
    return halt.at("reason") == "marker_lost" || halt.at("reason") == "records_lost";
  });
  if ((may_repeat || options.new_cluster) && !options.change.yes)
    print_decided(outbox_decided_json(decided, true));
  if (may_repeat)
    confirm(options.change, "send again",
            "Kafka may have some of these records. Look in the topic, and skip those that it has");
  if (options.new_cluster)
    confirm(options.change, "send", "the group's records go to the cluster that its relay reaches");
}

ExitCode retry_halted(const OutboxOrderOptions& options) {
  const config::Config config = load_worker_or_gate(options.config);
  store::OutboxOrder order = order_of(options, group_of(config));
  store::Session session = open_store(config, options.change.url);
  return change(operator_rights(), [&] {
    order.dry_run = true;  // shows what would end, before anybody is asked
    store::OutboxDecided decided =
        store::retry_outbox(session, order, options.which, options.new_cluster);
    if (!options.change.dry_run) {
      ask_to_retry(options, decided);
      order.dry_run = false;
      order.seen = seen_of(decided);
      decided = store::retry_outbox(session, order, options.which, options.new_cluster);
    }
    if (!decided.halts.empty())
      return done_with(options, session, order.group, decided, "the halt has ended",
                       "the relay sends it again within a second");
    if (!decided.cluster.empty())
      return done_with(options, session, order.group, decided,
                       "nothing of " + options.which + " was halted",
                       "the group's records go to the cluster that its relay reaches next");
    throw Stop(kFailed, not_halted(session, order.group, options.which));
  });
}

ExitCode skip_halted(const OutboxOrderOptions& options) {
  const config::Config config = load_worker_or_gate(options.config);
  store::OutboxOrder order = order_of(options, group_of(config));
  store::Session session = open_store(config, options.change.url);
  return change(operator_rights(), [&] {
    order.dry_run = true;  // what does not fit is refused before anybody is asked
    store::OutboxDecided decided = store::skip_outbox(session, order, options.ids);
    if (!options.change.dry_run) {
      if (!options.change.yes) print_decided(outbox_decided_json(decided, true));
      confirm(options.change, "skip",
              "these records are removed and never sent; hapax.operator_log keeps them whole");
      order.dry_run = false;
      order.seen = seen_of(decided);
      decided = store::skip_outbox(session, order, options.ids);
    }
    return done_with(options, session, order.group, decided, "skipped",
                     "the relay goes on with the records behind within a second");
  });
}

void add_looks(CLI::App& outbox, CommandLine& line) {
  const auto options = std::make_shared<OutboxOptions>();
  const auto add = [&](const char* name, const char* what,
                       ExitCode (*action)(const OutboxOptions&)) {
    auto* const sub = outbox.add_subcommand(name, what);
    add_config(*sub, options->config);
    sub->add_flag("--json", options->json,
                  "For programs; bytes as {\"text\"}, or as {\"base64\"} if they are not UTF-8");
    sub->callback([&line, options, action] {
      line.command = [options, action] { return action(*options); };
    });
    return sub;
  };
  auto* const listing =
      add("list", "Show how many records wait for each topic, and what is halted", list_outbox);
  listing->add_option("--topic", options->topic, "Its records, oldest first, instead");
  listing->add_option("--above", options->above, "With --topic: only ids above this one");
  listing->add_option("--limit", options->limit, "With --topic: at most so many")
      ->check(CLI::Range(1, 10'000));
  auto* const showing = add("show", "Show an unsent record whole", show_outbox);
  showing->add_option("ID", options->id, "As `list` and halts name it")->required();
  showing->add_flag("--payload", options->payload,
                    "The payload's bytes to stdout; escaped on a terminal");
}

void add_decisions(CLI::App& outbox, CommandLine& line) {
  const auto add = [&](const char* name, const char* what,
                       ExitCode (*action)(const OutboxOrderOptions&)) {
    auto* const sub = outbox.add_subcommand(name, what);
    const auto options = std::make_shared<OutboxOrderOptions>();
    add_config(*sub, options->config);
    add_operator(*sub, options->change);
    sub->add_flag("--json", options->json, "The result for programs");
    sub->callback([&line, options, action] {
      line.command = [options, action] { return action(*options); };
    });
    return std::pair(sub, options);
  };
  const auto [retry, again] = add("retry", "End a halt: the relay sends again", retry_halted);
  retry
      ->add_option("WHICH", again->which, "A record's ID, or a TOPIC with all that is halted in it")
      ->required();
  retry->add_flag("--new-cluster", again->new_cluster,
                  "The group's records go to another Kafka cluster from now on: the one that its "
                  "relay reaches");
  const auto [skip, never] =
      add("skip", "Remove halted records, so that they are never sent", skip_halted);
  skip->add_option("ID", never->ids, "Halted records; all of them are removed, or none")
      ->required();
}

}  // namespace

void add_outbox(CLI::App& app, CommandLine& line) {
  auto* const command = app.add_subcommand(
      "outbox", "Look at published records that wait for Kafka, and end their halts");
  command->require_subcommand(1);
  command->footer(
      "A record is here from the commit of its message until Kafka has acknowledged it.\n\n"
      "Examples:\n"
      "  hapax outbox list -c worker.json\n"
      "  hapax outbox list -c worker.json --topic receipts\n"
      "  hapax outbox show -c worker.json 17\n"
      "  hapax outbox retry -c worker.json --url $OPERATOR receipts --why 'the right to write is "
      "back'\n"
      "  hapax outbox skip -c worker.json --url $OPERATOR 17 --why 'too large, sent by hand' "
      "--yes");
  add_looks(*command, line);
  add_decisions(*command, line);
}

}  // namespace hapax::app
