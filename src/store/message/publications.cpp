#include "store/message/publications.hpp"

#include <algorithm>

#include "sql_statements.hpp"
#include "store/quote.hpp"
#include "store/transaction.hpp"

namespace hapax::store {
namespace {

using Text = std::optional<std::string>;

template <class Value>
std::string array_of(const std::vector<Value>& values) {
  std::string array = "{";
  for (const Value& value : values) append_array_element(array, value);
  return array + "}";
}

UnpublishedLetter letter_of(const Row& row) {
  UnpublishedLetter letter;
  letter.id = row["id"].as<std::int64_t>();
  letter.topic = row["topic"].text();
  letter.generation = row["generation"].as<std::int32_t>();
  letter.partition = row["partition"].as<std::int32_t>();
  letter.offset = row["kafka_offset"].as<std::int64_t>();
  letter.timestamp_ms = row["message_timestamp"].as<Text>();
  letter.timestamp_type = row["timestamp_type"].text();
  letter.record_key = bytes_of_hex(row["message_key"]);
  letter.payload = bytes_of_hex(row["payload"]);
  letter.headers = letter_headers_of(row["headers"]);
  letter.without_bytes = row["without_bytes"].as<bool>();
  letter.reason = row["reason"].text();
  letter.error = row["error"].text();
  letter.sqlstate = row["sqlstate"].as<Text>();
  letter.attempts = row["attempts"].text();
  letter.handler = row["handler"].text();
  letter.handler_version = row["handler_version"].text();
  letter.first_at = row["first_at"].text();
  letter.created_at = row["created_at"].text();
  return letter;
}

}  // namespace

std::size_t move_letters(Session& session, const std::string& group,
                         const std::vector<std::string>& topics, std::chrono::milliseconds longest,
                         const std::function<Published(const UnpublishedLetter&)>& record_of,
                         std::size_t most) {
  Transaction transaction(session);
  for (const char* const setting : {"statement_timeout", "lock_timeout"})
    transaction.add("SET LOCAL " + std::string(setting) + " = " + std::to_string(longest.count()));
  // Most looks find nothing, and write nothing.
  const std::string consumed = array_of(topics);
  if (transaction.run(sql::kCountUnpublished, {group, consumed, 1, "{}"})[0][0].text() == "0")
    return 0;
  if (!transaction.run(sql::kLockLetters, {group})[0]["locked"].as<bool>()) return 0;
  std::vector<std::int64_t> ids;
  std::vector<Published> records;  // of one source topic
  for (const Row row :
       transaction.run(sql::kReadUnpublished, {group, consumed, most, kMostLetterBytes})) {
    Published record = record_of(letter_of(row));
    if (!records.empty() && records.back().source.topic != record.source.topic)
      add_published(transaction, std::exchange(records, {}));
    ids.push_back(row["id"].as<std::int64_t>());
    records.push_back(std::move(record));
  }
  if (ids.empty()) return 0;
  add_published(transaction, records);
  transaction.run(sql::kMarkPublished, {array_of(ids)});
  transaction.commit();
  return ids.size();
}

std::size_t count_unpublished(Session& session, const std::string& group,
                              const std::vector<std::string>& topics,
                              const std::vector<std::string>& destinations, std::size_t most) {
  Transaction transaction(session);
  transaction.run("SET LOCAL statement_timeout = '1s'");  // sent with the rest it binds nothing
  return transaction
      .run(sql::kCountUnpublished, {group, array_of(topics), most, array_of(destinations)})[0][0]
      .as<std::size_t>();
}

}  // namespace hapax::store
