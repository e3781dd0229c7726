#include "store/message/dead_letter.hpp"

#include "sql_statements.hpp"
#include "store/quote.hpp"

namespace hapax::store {
namespace {

std::optional<Parameter> bytes_or_null(const std::optional<std::string_view>& bytes) {
  if (!bytes) return std::nullopt;
  return Parameter::bytes(*bytes);
}

// One element of a bytea[] literal. Inside one, the backslash of \x is doubled.
void append_element(std::string& array, const std::optional<std::string_view>& bytes) {
  if (array.size() > 1) array += ',';
  if (!bytes) {
    array += "NULL";
    return;
  }
  array += "\"\\";
  array += *Parameter::bytes(*bytes).text();
  array += '"';
}

Parameter text_or_null(const std::string& text) {
  return text.empty() ? Parameter(nullptr) : Parameter(text);
}

const char* name_of(TimestampType type) {
  switch (type) {
    case TimestampType::none: return "none";
    case TimestampType::create_time: return "create_time";
    case TimestampType::log_append_time: return "log_append_time";
  }
  return "none";
}

std::optional<std::string> facts_of(const DeadLetter& letter) {
  if (letter.keep_bytes && letter.trace_id.empty()) return letter.other;
  nlohmann::json facts = letter.other ? nlohmann::json::parse(*letter.other) : nlohmann::json();
  if (!letter.keep_bytes) facts["bytes_kept"] = false;  // or a null payload looks like a tombstone
  if (!letter.trace_id.empty()) facts["trace_id"] = letter.trace_id;
  return facts.dump();
}

}  // namespace

LetterHeaders letter_headers_of(const Field& headers) {
  LetterHeaders read;
  for (const auto& header : headers.as<nlohmann::json>()) {
    std::optional<std::string> value;
    if (!header.at(1).is_null()) value = bytes_of_hex(header.at(1).get<std::string>());
    read.emplace_back(bytes_of_hex(header.at(0).get<std::string>()), std::move(value));
  }
  return read;
}

std::optional<std::int64_t> insert_dead_letter(Transaction& transaction, const DeadLetter& letter) {
  const Message& message = letter.message;
  std::string names = "{";
  std::string values = "{";
  for (const Header& header : letter.keep_bytes ? message.headers() : std::span<const Header>()) {
    append_element(names, header.name);
    append_element(values, header.value);
  }
  std::vector<Parameter> parameters = letter.source.parameters();
  const auto add = [&](Parameter value) { parameters.push_back(std::move(value)); };
  add(timestamp_ms(message));
  add(name_of(message.timestamp_type()));
  add(letter.keep_bytes ? bytes_or_null(message.key()) : std::nullopt);
  add(letter.keep_bytes ? bytes_or_null(message.payload()) : std::nullopt);
  add(names + "}");
  add(values + "}");
  add(letter.reason);
  add(storable(letter.error));
  add(text_or_null(letter.sqlstate));
  add(letter.attempts);
  add(letter.handler);
  add(letter.handler_version);
  add(letter.scope);
  if (letter.identity != nullptr) {
    add(letter.identity->key);
    add(letter.identity->tenant);
    add(Parameter::bytes(letter.identity->fingerprint.digest));
    add(letter.identity->fingerprint.rule);
  } else {
    for (int i = 0; i < 4; ++i) add(nullptr);
  }
  add(facts_of(letter));
  const Rows rows = transaction.run(sql::kInsertDeadLetter, parameters);
  if (rows.empty()) return std::nullopt;
  return rows[0]["id"].as<std::int64_t>();
}

void add_failed_again(Transaction& transaction, const DeadLetter& letter) {
  std::vector<Parameter> parameters = letter.source.parameters();
  parameters.emplace_back(storable(letter.error));
  parameters.push_back(text_or_null(letter.sqlstate));
  parameters.emplace_back(letter.handler);
  parameters.emplace_back(letter.attempts);
  transaction.add(transaction.session().execute(sql::kFailAgain, parameters));
}

std::optional<FailedRuns> record_attempt(Session& session, const FailedRun& run) {
  Transaction transaction(session);
  std::vector<Parameter> parameters = run.source.parameters();
  parameters.emplace_back(storable(run.error));
  parameters.push_back(text_or_null(run.sqlstate));
  parameters.emplace_back(run.handler);
  parameters.emplace_back(static_cast<double>(run.wait.count()) / 1000.0);
  parameters.emplace_back(run.epoch);
  const Rows rows = transaction.run(sql::kRecordAttempt, parameters);
  if (rows.empty()) return std::nullopt;
  const FailedRuns runs{rows[0]["count"].as<int>(),
                        std::chrono::milliseconds(rows[0]["lasting_ms"].as<std::int64_t>())};
  transaction.commit();
  return runs;
}

void add_forget_attempts(Transaction& transaction, const Source& source) {
  transaction.add_own(transaction.session().execute(sql::kForgetAttempts, source.parameters()));
}

void forget_attempts(Session& session, const Source& source) {
  Transaction transaction(session);
  add_forget_attempts(transaction, source);
  transaction.commit();
}

std::optional<int> announce_run(Session& session, const Source& source, const std::string& handler,
                                std::int64_t epoch) {
  Transaction transaction(session);
  std::vector<Parameter> parameters = source.parameters();
  parameters.emplace_back(handler);
  parameters.emplace_back(epoch);
  const Rows rows = transaction.run(sql::kAnnounceRun, parameters);
  if (rows.empty()) return std::nullopt;
  const int crashes = rows[0][0].as<int>();
  transaction.commit();
  return crashes;
}

void withdraw_run(Session& session, const Source& source, std::int64_t epoch) {
  Transaction transaction(session);
  std::vector<Parameter> parameters = source.parameters();
  parameters.emplace_back(epoch);
  transaction.run(sql::kWithdrawRun, parameters);
  transaction.commit();
}

}  // namespace hapax::store
