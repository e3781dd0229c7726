// Messages that were written to a file, and handlers that were built elsewhere.
#include <algorithm>
#include <fstream>
#include <set>
#include <stdexcept>

#include "hapax/testing.hpp"
#include "key/siv.hpp"
#include "plugin/load.hpp"

namespace hapax::testing {
namespace {

using nlohmann::json;

std::string bytes_of_base64(std::string text) {
  while (text.ends_with('=')) text.pop_back();
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  auto bytes = key::bytes_of_base64url(text);
  if (!bytes) throw std::runtime_error("its base64 is wrong");
  return *std::move(bytes);
}

// Of {"text": …}, {"base64": …} or null.
std::optional<std::string> bytes_of(const json& value) {
  if (value.is_null()) return std::nullopt;
  if (value.contains("base64")) return bytes_of_base64(value.at("base64").get<std::string>());
  return value.at("text").get<std::string>();
}

// A letter whose message was too large for PostgreSQL has no payload, as a tombstone has none.
bool has_bytes(const json& line) {
  const json other = line.value("other", json());
  return !other.is_object() || other.value("bytes_kept", true);
}

Record record_of(const json& line) {
  if (!has_bytes(line))
    throw std::runtime_error(
        "this dead letter does not hold its message, which was too large. Record the message with "
        "`hapax record`, or remove the line");
  Record record;
  record.payload = bytes_of(line.at("payload"));
  record.key = bytes_of(line.at("message_key"));
  for (const json& header : line.at("headers"))
    record.headers.emplace_back(bytes_of(header.at("name")).value(), bytes_of(header.at("value")));
  const json& timestamp = line.at("message_timestamp");
  if (!timestamp.is_null()) record.timestamp_ms = timestamp.get<std::int64_t>();
  if (line.value("timestamp_type", "") == "log_append_time")
    record.timestamp_type = TimestampType::log_append_time;
  record.partition = line.at("partition").get<std::int32_t>();
  record.offset = line.at("kafka_offset").get<std::int64_t>();
  return record;
}

}  // namespace

std::vector<Record> read_records(const std::string& file, const std::string& topic) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read the records of " + file);
  std::vector<Record> records;
  std::set<std::string> topics;
  std::set<std::int64_t> generations;  // of dead letters
  std::string text;
  for (std::size_t number = 1; std::getline(in, text); ++number) {
    try {
      const json line = json::parse(text);
      const auto its = line.at("topic").get<std::string>();
      topics.insert(its);
      if (!topic.empty() && its != topic) continue;
      records.push_back(record_of(line));
      if (line.contains("generation"))
        generations.insert(line.at("generation").get<std::int64_t>());
    } catch (const std::exception& error) {
      throw std::runtime_error(
          file + ", line " + std::to_string(number) +
          ": no record of `hapax record` or `hapax dead export`: " + error.what());
    }
  }
  std::string found;
  for (const std::string& its : topics) found += (found.empty() ? "" : ", ") + its;
  if (records.empty())
    throw std::runtime_error(file + " holds no record" +
                             (topics.empty() ? "" : " of topic " + topic + ", but of " + found));
  if (topic.empty() && topics.size() > 1)
    throw std::runtime_error(file + " holds records of several topics: name one of " + found);
  if (generations.size() > 1)
    throw std::runtime_error(
        file + " holds dead letters of generations " + std::to_string(*generations.begin()) +
        " to " + std::to_string(*generations.rbegin()) +
        ": the topic was made again, and equal offsets are other messages. Keep the lines of one");
  // `hapax dead export` writes the newest first.
  std::ranges::stable_sort(
      records, {}, [](const Record& record) { return std::pair(record.partition, record.offset); });
  return records;
}

HandlerFactory plugin_handler(const std::string& path, const std::string& name) {
  std::string found;
  for (HandlerFactory& handler : plugin::load_plugin(path)) {
    if (handler.name == name) return std::move(handler);
    found += (found.empty() ? "" : ", ") + handler.name;
  }
  throw std::runtime_error("plugin " + path + " has no handler " + name + "; it has " + found);
}

}  // namespace hapax::testing
