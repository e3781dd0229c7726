#include "inspect/outbound_accounting.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "cli/store_access.hpp"
#include "inspect/evidence.hpp"
#include "inspect/offset_bounds.hpp"
#include "inspect/origin.hpp"
#include "inspect/progress.hpp"
#include "kafka/topic_settings.hpp"
#include "key/sha256.hpp"

namespace hapax::app {
namespace {

constexpr std::size_t kAtOnce = 50;  // partitions

// Names a record that a relay of this group has sent, as published record or as dead letter. Its
// last header tells which. Nothing of other records.
std::optional<std::string> name_of_record(const Message& message, const std::string& group) {
  if (message.headers().empty()) return std::nullopt;
  if (message.headers().back().name == "hapax-origin") {
    const auto origin = origin_of(message);
    if (!origin || origin->source.group != group) return std::nullopt;
    return "record " + origin->idempotency_key;
  }
  if (message.headers().back().name != "hapax-left-out") return std::nullopt;
  std::string id, store, by;
  for (const Header& header : message.headers()) {
    const std::string value(header.value.value_or(""));
    if (header.name == "hapax-dead-letter-id") id = value;
    if (header.name == "hapax-store") store = value;
    if (header.name == "hapax-group") by = value;
  }
  if (by != group) return std::nullopt;
  return "letter " + store + " " + id;
}

void add_field(std::string& text, std::optional<std::string_view> field) {
  text += field ? std::to_string(field->size()) + ":" : "null:";
  text += field.value_or("");
}

// All but the trace: a message that runs again has another one.
std::string contents_of(const Message& message) {
  std::string text;
  add_field(text, message.key());
  add_field(text, message.payload());
  for (const Header& header : message.headers()) {
    if (header.name == "traceparent" || header.name == "tracestate") continue;
    add_field(text, header.name);
    add_field(text, header.value);
  }
  return text;
}

template <std::size_t N>
std::array<char, N> digest_of(const std::string& text) {
  std::array<char, N> digest;
  std::memcpy(digest.data(), key::sha256(text).data(), N);
  return digest;
}

}  // namespace

OutboundAccounting::OutboundAccounting(const config::Config& config, const AuditWanted& wanted,
                                       std::int64_t sent)
    : config_(config),
      wanted_(wanted),
      sent_(sent),
      reader_(config),
      whole_(config, KafkaReader::End::whole) {}

void OutboundAccounting::run() {
  reader_.reach(kKafkaTimeout);
  whole_.reach(kKafkaTimeout);
  const kafka::Consumer& consumer = reader_.consumer();
  const int count = consumer.partition_count(wanted_.topic, kKafkaTimeout);
  expect_partition(wanted_.topic, count, wanted_.partition.value_or(0));
  std::vector<kafka::TopicPartition> partitions;
  for (std::int32_t partition = 0; partition < count; ++partition) {
    accounts_.push_back({.partition = partition});
    if (!wanted_.partition || *wanted_.partition == partition)
      partitions.emplace_back(wanted_.topic, partition);
  }
  const auto froms = offset_bounds(consumer, "--from", wanted_.from, now_ms(), partitions);
  const auto tos = offset_bounds(consumer, "--to", wanted_.to, now_ms(), partitions);
  Progress progress(wanted_.progress);
  bool from_the_start = true;
  for (std::size_t done = 0; done < partitions.size(); done += kAtOnce) {
    const auto first = partitions.begin() + static_cast<std::ptrdiff_t>(done);
    const std::vector<kafka::TopicPartition> some(
        first, first + static_cast<std::ptrdiff_t>(std::min(kAtOnce, partitions.size() - done)));
    const auto written = whole_.consumer().ends(some, kKafkaTimeout);
    const auto logs = consumer.ranges(some, kKafkaTimeout);
    std::vector<KafkaReader::Stretch> stretches;
    for (const kafka::TopicPartition& id : some) {
      const kafka::OffsetRange log = logs.at(id);
      OutboundAccount& account = accounts_[static_cast<std::size_t>(id.second)];
      account.from = std::clamp(froms ? froms->at(id) : 0, log.low, log.high);
      account.to = std::clamp(tos ? tos->at(id) : log.high, account.from, log.high);
      from_the_start = from_the_start && log.low == 0;
      if (const auto end = written.find(id); end != written.end() && end->second > log.high)
        hidden_ = id.second;
      stretches.push_back({id, account.from, account.to});
    }
    const auto ends = reader_.read(stretches, [&](auto record) {
      const Message& message = record->message();
      take(message);
      if (seen_.size() % 1000 == 0)
        progress.show(message.partition(), message.offset(),
                      accounts_[static_cast<std::size_t>(message.partition())].to);
    });
    for (std::size_t n = 0; n < ends.size(); ++n)
      accounts_[static_cast<std::size_t>(some[n].second)].to = ends[n];
  }
  find_repeats();
  look_for_missing(from_the_start);
  if (wanted_.partition)
    std::erase_if(accounts_, [&](const auto& one) { return one.partition != *wanted_.partition; });
}

void OutboundAccounting::take(const Message& message) {
  OutboundAccount& account = accounts_[static_cast<std::size_t>(message.partition())];
  const auto name = name_of_record(message, group_of(config_));
  if (!name) {
    ++account.others;
    return;
  }
  ++account.records;
  seen_.push_back({digest_of<16>(*name), digest_of<8>(contents_of(message)), message.partition(),
                   message.offset()});
}

void OutboundAccounting::find_repeats() {
  std::ranges::sort(
      seen_, {}, [](const Seen& one) { return std::tuple(one.name, one.partition, one.offset); });
  const Seen* first = nullptr;
  for (const Seen& one : seen_) {
    if (first == nullptr || first->name != one.name) {
      first = &one;
      continue;
    }
    OutboundAccount& account = accounts_[static_cast<std::size_t>(one.partition)];
    const bool differs = first->contents != one.contents;
    ++account.repeats;
    if (differs) ++account.differing;
    if ((differs || is_exact()) && told_.size() < wanted_.limit)
      told_.push_back({one.partition, one.offset, first->partition, first->offset, differs});
  }
  std::ranges::sort(told_, {},
                    [](const Repeat& one) { return std::pair(one.partition, one.offset); });
}

std::int64_t OutboundAccounting::beside() const {
  return sum(&OutboundAccount::records) - sum(&OutboundAccount::repeats) - sent_;
}

// A record that a message has published twice, because its key was forgotten, was sent twice. So
// repeats may be among what was sent, or stand beside it.
void OutboundAccounting::look_for_missing(bool from_the_start) {
  if (wanted_.partition || !wanted_.from.empty() || !wanted_.to.empty()) {
    why_not_ = "this reads a part of the topic only";
    return;
  }
  const std::int64_t lacks = std::max<std::int64_t>(0, sent_ - sum(&OutboundAccount::records));
  if (lacks == 0 && beside() < 0) {
    why_not_ = "up to " + std::to_string(-beside()) +
               " may be missing, because records come again. Or so many were published twice, "
               "because their messages' keys were forgotten";
  } else if (lacks == 0) {
    missing_ = 0;
  } else if (!from_the_start) {
    why_not_ = "Kafka has deleted the beginning";
  } else if (hidden_) {
    why_not_ = "an open transaction hides the end of partition " + std::to_string(*hidden_);
  } else {
    try {
      const auto policy = kafka::read_topic_settings(config_.kafka.properties, wanted_.topic,
                                                     kafka::kSettingsTimeout)
                              .cleanup_policy;
      if (policy == "delete")
        missing_ = lacks;
      else
        why_not_ = "the topic is compacted";
    } catch (const std::exception& error) {
      why_not_ = std::string("Kafka does not tell whether the topic is compacted: ") + error.what();
    }
  }
}

std::int64_t OutboundAccounting::sum(std::int64_t OutboundAccount::*count) const {
  std::int64_t sum = 0;
  for (const OutboundAccount& account : accounts_) sum += account.*count;
  return sum;
}

bool OutboundAccounting::proven() const {
  return missing_.value_or(0) == 0 && sum(&OutboundAccount::differing) == 0 &&
         (!is_exact() || sum(&OutboundAccount::repeats) == 0);
}

Json json_of(const OutboundAccounting& audit) {
  Json partitions = Json::array();
  for (const OutboundAccount& one : audit.accounts())
    partitions.push_back({{"partition", one.partition},
                          {"from", one.from},
                          {"to", one.to},
                          {"records", one.records},
                          {"repeats", one.repeats},
                          {"differing", one.differing},
                          {"others", one.others}});
  Json repeats = Json::array();
  for (const Repeat& one : audit.repeats())
    repeats.push_back({{"partition", one.partition},
                       {"offset", one.offset},
                       {"first_partition", one.first_partition},
                       {"first_offset", one.first_offset},
                       {"differs", one.differs}});
  return {{"partitions", std::move(partitions)},
          {"repeats", std::move(repeats)},
          {"missing", audit.missing() ? Json(*audit.missing()) : Json()},
          {"beside", audit.missing() ? Json(audit.beside()) : Json()},
          {"proven", audit.proven()}};
}

void print_outbound(const OutboundAccounting& audit, const std::string& topic) {
  Table table({"PARTITION", "FROM", "TO", "RECORDS", "REPEATS", "DIFFERING", "OTHERS"});
  const auto add = [&](std::vector<std::string> cells, const OutboundAccount& counts) {
    for (const std::int64_t count :
         {counts.records, counts.repeats, counts.differing, counts.others})
      cells.push_back(std::to_string(count));
    table.add(std::move(cells));
  };
  for (const OutboundAccount& one : audit.accounts())
    add({std::to_string(one.partition), std::to_string(one.from), std::to_string(one.to)}, one);
  add({"all", "", ""}, {.records = audit.sum(&OutboundAccount::records),
                        .repeats = audit.sum(&OutboundAccount::repeats),
                        .differing = audit.sum(&OutboundAccount::differing),
                        .others = audit.sum(&OutboundAccount::others)});
  table.print();
  const auto place = [&](std::int32_t partition, std::int64_t offset) {
    return topic + "/" + std::to_string(partition) + "/" + std::to_string(offset);
  };
  for (const Repeat& one : audit.repeats())
    print_line(std::string(one.differs ? "DIFFERS  " : "REPEATS  ") +
               place(one.partition, one.offset) +
               (one.differs ? "  has other contents than " : "  comes behind ") +
               place(one.first_partition, one.first_offset) + ", under the same idempotency-key");
  if (!audit.missing())
    print_line("not compared with the count of sent records: " + audit.why_not());
  else if (*audit.missing() > 0)
    print_line("MISSING  " + std::to_string(*audit.missing()) +
               " records that Kafka has acknowledged: the topic was made again, records went to "
               "another cluster, or Kafka has lost them");
  else if (audit.beside() > 0)
    print_line("as many records as were sent are there, and " + std::to_string(audit.beside()) +
               " beside: sent while this ran, or before they were counted");
  else
    print_line("each record that was sent is there");
}

}  // namespace hapax::app
