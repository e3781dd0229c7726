// hapax offsets show|rewind|skip: shows the group's positions, and moves them. forget_group.cpp
// deletes those of a group that is gone.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "app/forget_group.hpp"
#include "cli/coordinates.hpp"
#include "cli/kafka_reader.hpp"
#include "cli/operator.hpp"
#include "cli/output.hpp"
#include "cli/store_access.hpp"
#include "config/units.hpp"
#include "inspect/evidence.hpp"
#include "kafka/provenance.hpp"
#include "observe/log.hpp"
#include "store/operator/decisions.hpp"
#include "store/operator/inspect.hpp"
#include "store/operator/operator.hpp"

namespace hapax::app {
namespace {

constexpr int kMaxChanges = 20;

struct OffsetsOptions {
  ConfigOption config;
  OperatorOptions change;
  std::string place, to;
  bool json = false;
};

// A topic of the configuration, and the partitions of it that the command names.
struct Meant {
  std::string topic;
  std::vector<std::int32_t> partitions;
  std::optional<std::int32_t> one;
};

Meant meant(const OffsetsOptions& options, const config::Config& config, KafkaReader& reader) {
  const auto place = parse_place(options.place);
  if (!place || place->offset)
    throw Stop(kUsage, "\"" + options.place + "\" is neither TOPIC nor TOPIC/PARTITION");
  std::string topics;
  bool known = false;
  for (const config::Route& route : config.routes) {
    known = known || route.topic == place->topic;
    topics += (topics.empty() ? "" : ", ") + route.topic;
  }
  if (!known)
    throw Stop(kFailed, "no route has the topic \"" + place->topic + "\"; there are: " + topics);
  int count = 0;
  try {
    reader.reach(kKafkaTimeout);
    count = reader.consumer().partition_count(place->topic, kKafkaTimeout);
  } catch (const std::exception& error) {
    throw Stop(kUnreachable, std::string("Kafka: ") + error.what());
  }
  if (count == 0) throw Stop(kFailed, "Kafka has no topic \"" + place->topic + "\"");
  Meant found{place->topic, {}, place->partition};
  for (int partition = 0; partition < count; ++partition)
    if (!place->partition || *place->partition == partition) found.partitions.push_back(partition);
  if (found.partitions.empty())
    throw Stop(kFailed, options.place + " does not exist; the topic has partitions 0 to " +
                            std::to_string(count - 1));
  return found;
}

Json shown(const store::TopicPartition& id, const Json& row, const KafkaReader& reader) {
  const kafka::Consumer& consumer = reader.consumer();
  const kafka::OffsetRange range = consumer.range(id, kKafkaTimeout);
  const auto all = consumer.committed({id}, kKafkaTimeout);
  const auto found = all.find(id);
  if (found == all.end())
    throw Stop(kUnreachable, "Kafka does not tell the group's offset for " + id.first + "/" +
                                 std::to_string(id.second) + ": may this user read the topic?");
  const kafka::Committed& committed = found->second;
  const auto column = [&](const char* name) { return row.is_null() ? Json() : row.at(name); };
  Json whose;
  if (committed.offset)
    whose = kafka::Provenance::parse(committed.metadata) ? "hapax" : "something else";
  return {{"partition", id.second},
          {"log_start", range.low},
          {"checkpoint", column("next_offset")},
          {"highest", column("highest")},
          {"committed", committed.offset ? Json(*committed.offset) : Json()},
          {"committed_by", whose},
          {"end", range.high},
          {"epoch", column("epoch")},
          {"owner", column("owner")},
          {"start_as", column("start_as")}};
}

ExitCode show(const OffsetsOptions& options) {
  const config::Config config = load(options.config);
  store::Session session = open_store(config);
  KafkaReader reader(config);
  const Meant what = meant(options, config, reader);
  Json partitions = Json::array();
  const Json rows = store::read_partitions(session, group_of(config));
  for (const std::int32_t partition : what.partitions) {
    Json row;
    for (const Json& candidate : rows)
      if (candidate.at("topic") == what.topic && candidate.at("partition") == partition)
        row = candidate;
    asking_kafka([&] { partitions.push_back(shown({what.topic, partition}, row, reader)); });
  }
  const Json moves =
      store::read_position_changes(session, group_of(config), what.topic, what.one, kMaxChanges);
  if (options.json) {
    print_json({{"topic", what.topic}, {"partitions", partitions}, {"moves", moves}});
    return kDone;
  }
  Table table(
      {"PARTITION", "LOG START", "CHECKPOINT", "HIGHEST", "KAFKA", "BY", "END", "EPOCH", "OWNER"});
  for (const Json& one : partitions)
    table.add({cell(one.at("partition")), cell(one.at("log_start")), cell(one.at("checkpoint")),
               cell(one.at("highest")), cell(one.at("committed")), cell(one.at("committed_by")),
               cell(one.at("end")), cell(one.at("epoch")), cell(one.at("owner"))});
  table.print();
  Table history({"MOVED", "PARTITION", "FROM", "TO", "CAUSE", "WHO", "WHY"});
  for (const Json& move : moves)
    history.add({time_cell(move.at("at")), cell(move.at("partition")), cell(move.at("from_offset")),
                 cell(move.at("to_offset")), cell(move.at("cause")), cell(move.at("who")),
                 cut(cell(move.at("why")), 60)});
  if (!history.empty()) {
    print_line("");
    history.print();
  }
  return kDone;
}

// The offset that `--to` names: an offset, earliest, latest, or how long ago. Throws: Stop.
std::int64_t target(const OffsetsOptions& options, const Meant& what,
                    const store::TopicPartition& id, const kafka::Consumer& consumer) {
  const kafka::OffsetRange range = consumer.range(id, kKafkaTimeout);
  if (options.to == "earliest") return range.low;
  if (options.to == "latest") return range.high;
  std::int64_t offset = 0;
  const char* const end = options.to.data() + options.to.size();
  const auto [rest, error] = std::from_chars(options.to.data(), end, offset);
  if (error == std::errc() && rest == end) {
    if (!what.one && what.partitions.size() > 1)
      throw Stop(kUsage, "an offset means one partition: name it, " + what.topic + "/PARTITION");
    if (offset < range.low || offset > range.high)
      throw Stop(kFailed, options.place + " has offsets " + std::to_string(range.low) + " to " +
                              std::to_string(range.high) + ", " + options.to + " is not there");
    return offset;
  }
  const auto ago = config::parse_duration(options.to);
  if (!ago)
    throw Stop(kUsage,
               "--to \"" + options.to +
                   "\" is none of: an offset, earliest, latest, how long ago (15m, 2h, 7d)");
  // In milliseconds, because nanoseconds hold only 292 years.
  const std::int64_t since = now_ms() - ago->count();
  if (since < 0) throw Stop(kUsage, "--to " + options.to + " is before 1970");
  return consumer.offset_at(id, since, kKafkaTimeout);
}

std::vector<store::Move> moves_of(const OffsetsOptions& options, const config::Config& config,
                                  store::Jump jump) {
  KafkaReader reader(config);
  const Meant what = meant(options, config, reader);
  std::vector<store::Move> moves;
  for (const std::int32_t partition : what.partitions) {
    const store::TopicPartition id{what.topic, partition};
    moves.push_back({.group = group_of(config),
                     .partition = id,
                     .to = target(options, what, id, reader.consumer()),
                     .jump = jump,
                     .who = operator_name(options.change.who),
                     .why = options.change.why,
                     .dry_run = true});
  }
  return moves;
}

void print(const store::Move& move, std::int64_t from) {
  print_line(move.partition.first + "/" + std::to_string(move.partition.second) + "  " +
             std::to_string(from) + " -> " + std::to_string(move.to) + "  (" +
             std::to_string(std::abs(move.to - from)) + " offsets)");
}

// If a whole topic moves, leaves out partitions that are at their target already, or beyond it.
void drop_those_in_place(store::Session& session, std::vector<store::Move>& moves) {
  std::string refused;
  std::erase_if(moves, [&](store::Move& move) {
    try {
      move.seen = store::move_position(session, move);
      print(move, move.seen->offset);
      return false;
    } catch (const store::Refused& error) {
      refused += (refused.empty() ? "" : "\n") + std::string(error.what());
      return true;
    }
  });
  if (moves.empty()) throw Stop(kFailed, "nothing to move: " + refused);
  if (!refused.empty()) print_line("left alone: " + refused);
}

std::string what_comes_again(const config::Config& config, const std::string& topic) {
  const auto& route = *std::ranges::find(config.routes, topic, &config::Route::topic);
  if (key::is_by_position(route.key))
    return "The route's key is the position, so nothing tells what took effect below the highest "
           "checkpoint. A message there halts its partition, unknown_below_highest. To take the "
           "rewind back: `hapax offsets skip` to the highest checkpoint";
  return "What took effect is known by its key and does not run again (`hapax keys forget` wants "
         "it to)";
}

// And which of the partitions are halted: these go on only after a decision.
void print_moved(store::Session& session, const std::vector<store::Move>& moves) {
  std::vector<store::Halt> halts = store::read_halts(session, moves.front().group);
  std::erase_if(halts, [&](const store::Halt& halt) {
    return std::ranges::none_of(moves,
                                [&](const auto& move) { return halt.stops(move.partition); });
  });
  const bool all_halted = std::ranges::all_of(moves, [&](const store::Move& move) {
    return std::ranges::any_of(halts, [&](const auto& halt) { return halt.stops(move.partition); });
  });
  print_line(all_halted ? "moved" : "moved; workers notice within their checkpoint_interval");
  for (const store::Halt& halt : halts) {
    const std::string name =
        halt.topic + (halt.whole_route ? "" : "/" + std::to_string(halt.partition));
    print_line(name + " is halted, " + halt.reason +
               ": nothing runs there until you end the halt, hapax resume " + name +
               " --decision … (" + store::decisions_for(halt.reason, halt.offset.has_value()) +
               ")");
  }
}

ExitCode move(const OffsetsOptions& options, store::Jump jump) {
  const config::Config config = load(options.config);
  store::Session session = open_store(config, options.change.url);
  return change(operator_rights(), [&] {
    std::vector<store::Move> moves;
    asking_kafka([&] { moves = moves_of(options, config, jump); });
    drop_those_in_place(session, moves);
    if (options.change.dry_run) {
      print_line("dry run: nothing was changed");
      return kDone;
    }
    if (jump == store::Jump::skip)
      confirm(options.change, "skip", "the messages between never take effect in this group");
    const std::vector<std::string> refused = store::move_positions(session, moves);
    for (const std::string& why : refused) print_line("left alone: " + why);
    if (refused.size() == moves.size())
      throw Stop(kFailed, "nothing was moved: the workers have moved on meanwhile");
    print_moved(session, moves);
    if (jump == store::Jump::rewind)
      print_line(what_comes_again(config, moves.front().partition.first));
    return kDone;
  });
}

ExitCode rewind(const OffsetsOptions& options) { return move(options, store::Jump::rewind); }
ExitCode skip(const OffsetsOptions& options) { return move(options, store::Jump::skip); }

}  // namespace

void add_offsets(CLI::App& app, CommandLine& line) {
  auto* const command =
      app.add_subcommand("offsets", "Show the group's positions, and move them on purpose");
  command->require_subcommand(1);
  command->footer(
      "A rewind doubles nothing: what took effect is a duplicate, and what retention has "
      "forgotten\n"
      "halts. A skip leaves messages out for ever; `hapax audit` names who did it.\n\n"
      "Examples:\n"
      "  hapax offsets show -c worker.json payments\n"
      "  hapax offsets rewind -c worker.json --url $OPERATOR payments --to 2h --why 'ledger "
      "restored'\n"
      "  hapax offsets skip -c worker.json --url $OPERATOR payments/3 --to 1042 --why 'test data' "
      "--yes\n"
      "  hapax offsets forget-group -c worker.json --url $OWNER old-group --why 'renamed'");
  const auto options = std::make_shared<OffsetsOptions>();
  const auto add = [&](const char* name, const char* what, ExitCode (*run)(const OffsetsOptions&)) {
    auto* const sub = command->add_subcommand(name, what);
    add_config(*sub, options->config);
    sub->add_option("WHERE", options->place, "TOPIC or TOPIC/PARTITION")->required();
    sub->callback(
        [&line, options, run] { line.command = [options, run] { return run(*options); }; });
    return sub;
  };
  add("show", "Show log, checkpoint and committed offset, and who moved them", show)
      ->add_flag("--json", options->json, "For programs");
  for (auto* const sub : {add("rewind", "Go back; what took effect stays a duplicate", rewind),
                          add("skip", "Go forward; what is between never takes effect", skip)}) {
    sub->add_option("--to", options->to,
                    "An offset, earliest, latest, or how long ago: 15m, 2h, 7d")
        ->required();
    add_operator(*sub, options->change);
  }
  add_forget_group(*command, line);
}

}  // namespace hapax::app
