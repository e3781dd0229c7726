#include "worker/dead_letter_record.hpp"

namespace hapax::worker {

kafka::OrderedRecord dead_letter_record(const store::UnpublishedLetter& letter,
                                        const std::string& topic, const std::string& group,
                                        const std::string& store_id, LeftOut left_out) {
  kafka::OrderedRecord record{topic, {}, {}, {}};
  if (left_out != LeftOut::all_but_error) {
    record.key = letter.record_key;
    record.headers = letter.headers;
  }
  if (left_out == LeftOut::nothing) record.payload = letter.payload;
  std::optional<std::string> missing;
  if (left_out == LeftOut::payload) missing = "payload";
  if (left_out == LeftOut::all_but_error) missing = "payload, key, headers";
  const auto add = [&](const char* name, std::optional<std::string> value) {
    record.headers.emplace_back(name, std::move(value));
  };
  add("hapax-dead-letter-id", std::to_string(letter.id));
  add("hapax-store", store_id);
  add("hapax-group", group);
  add("hapax-original-topic", letter.topic);
  add("hapax-original-partition", std::to_string(letter.partition));
  add("hapax-original-offset", std::to_string(letter.offset));
  add("hapax-original-timestamp", letter.timestamp_ms);
  add("hapax-original-timestamp-type", letter.timestamp_type);
  add("hapax-reason", letter.reason);
  add("hapax-error", letter.error);
  add("hapax-sqlstate", letter.sqlstate);
  add("hapax-attempts", letter.attempts);
  add("hapax-handler", letter.handler);
  add("hapax-handler-version", letter.handler_version);
  add("hapax-first-failed-at", letter.first_at);
  add("hapax-given-up-at", letter.created_at);
  add("hapax-left-out", missing);
  return record;
}

}  // namespace hapax::worker
