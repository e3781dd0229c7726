// hapax offsets forget-group: deletes the checkpoints of a group that is gone for good.
#include "app/forget_group.hpp"

#include <algorithm>

#include "cli/kafka_reader.hpp"
#include "cli/operator.hpp"
#include "cli/output.hpp"
#include "cli/store_access.hpp"
#include "inspect/evidence.hpp"
#include "store/operator/inspect.hpp"
#include "store/operator/operator.hpp"

namespace hapax::app {
namespace {

struct ForgetOptions {
  ConfigOption config;
  OperatorOptions change;
  std::string group;
  store::OptionalText topic;
  bool cluster_lost = false;
};

// Refuses if the group has members, because without its checkpoints it would halt. Refuses, too, if
// Kafka does not answer. A lost cluster cannot answer, so there the operator decides.
void refuse_living(const KafkaReader& reader, const store::ForgottenGroup& gone, const Json& rows,
                   bool cluster_lost) {
  const kafka::Consumer& consumer = reader.consumer();
  const std::string cluster = consumer.cluster_id(kKafkaTimeout);
  bool all_lost = cluster_lost;
  for (const Json& row : rows) {
    const Json& of = row.at("cluster_id");
    const bool elsewhere = !of.is_null() && of != cluster;
    if (!elsewhere) all_lost = false;
    if (elsewhere && !cluster_lost)
      throw Stop(kFailed, "group " + gone.group + " read " + cell(row.at("topic")) +
                              " in the cluster " + cell(of) + ", and this one is " + cluster +
                              ": give the configuration of that cluster, or --cluster-lost if it "
                              "is gone for good");
  }
  if (all_lost) return;
  // If this user may not describe the group, it would look like one without members.
  try {
    (void)consumer.committed({{rows.at(0).at("topic"), rows.at(0).at("partition")}}, kKafkaTimeout);
  } catch (const std::runtime_error& error) {
    throw Stop(kUnreachable, "Kafka does not tell whether group " + gone.group +
                                 " is gone; may this user describe it? " + error.what());
  }
  const kafka::Members members = consumer.members(gone.group, kKafkaTimeout);
  if (members.count == 0) return;
  const bool reads = !gone.topic || members.state != "Stable" ||
                     std::ranges::any_of(members.partitions,
                                         [&](const auto& one) { return one.first == *gone.topic; });
  if (reads)
    throw Stop(kFailed, "group " + gone.group + " is not gone: it has " +
                            std::to_string(members.count) + " members in Kafka (" + members.state +
                            ")");
}

// Refuses if something is left, because only workers of that group would carry it out.
void name_what_is_left(const Json& left, const std::string& group) {
  if (const Json& unsent = left.at("unsent"); unsent > 0)
    throw Stop(kFailed, "group " + group + " has " + cell(unsent) +
                            " published records that are not sent; no other group's relay sends "
                            "them. Run `hapax relay` with that group's configuration first, or "
                            "`hapax outbox skip` those that cannot be sent");
  if (const Json& letters = left.at("letters"); letters > 0)
    print_line(cell(letters) + " open dead letters stay; only workers of group " + group +
               " replay them");
  if (const Json& calls = left.at("calls"); calls > 0)
    print_line(cell(calls) + " calls to the outside are open; only workers of group " + group +
               " carry decisions about them out (`hapax outside list`)");
}

ExitCode forget_group(const ForgetOptions& options) {
  config::Config config = load(options.config);
  store::Session session = open_store(config, options.change.url);
  const store::ForgottenGroup gone{.group = options.group,
                                   .topic = options.topic,
                                   .who = operator_name(options.change.who),
                                   .why = options.change.why};
  config.kafka.properties["group.id"] = gone.group;
  return change("the schema's owner", [&] {
    const Json rows = store::read_group(session, gone);
    for (const Json& row : rows)
      print_line(cell(row.at("topic")) + "/" + cell(row.at("partition")) + "  checkpoint " +
                 cell(row.at("next_offset")) + ", written " + time_cell(row.at("updated_at")));
    name_what_is_left(store::read_left_of_group(session, gone), gone.group);
    // Never destroyed, because librdkafka 2.0.2 would wait without bound for a group that no broker
    // describes.
    static KafkaReader& reader = *new KafkaReader(config);
    const auto ask = [&] {
      asking_kafka([&] {
        reader.reach(kKafkaTimeout);
        refuse_living(reader, gone, rows, options.cluster_lost);
      });
    };
    ask();
    if (options.change.dry_run) {
      print_line("dry run: nothing was changed");
      return kDone;
    }
    confirm(options.change, "forget-group",
            "the group's checkpoints are deleted; if it comes back, its partitions halt");
    if (!options.change.yes) ask();  // meanwhile, the operator may have taken long to answer
    store::forget_group(session, gone, rows);
    print_line("forgotten: " + std::to_string(rows.size()) +
               " checkpoints, which hold no keys any more");
    return kDone;
  });
}

}  // namespace

void add_forget_group(CLI::App& offsets, CommandLine& line) {
  auto* const command = offsets.add_subcommand(
      "forget-group",
      "Delete the checkpoints of a group that is gone for good, so that it holds no keys");
  const auto options = std::make_shared<ForgetOptions>();
  add_config(*command, options->config);
  command->add_option("GROUP", options->group, "Its group.id")->required();
  command->add_option("--topic", options->topic, "Only this one, which it reads no more");
  command->add_flag("--cluster-lost", options->cluster_lost,
                    "Do not ask the group's cluster, which is gone for good");
  add_operator(*command, options->change);
  command->callback(
      [&line, options] { line.command = [options] { return forget_group(*options); }; });
}

}  // namespace hapax::app
