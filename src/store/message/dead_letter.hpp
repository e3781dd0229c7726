// Failed runs and messages given up on, kept in PostgreSQL.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hapax/message.hpp"
#include "key/identity.hpp"
#include "store/message/source.hpp"
#include "store/transaction.hpp"

namespace hapax::store {

// Why and by whom a message was given up on. The whole message goes into the letter.
struct DeadLetter {
  const Message& message;
  const Source& source;
  std::string reason;  // a fixed word: rejected, attempts_exhausted, payload_drift, missing_key …
  std::string error;   // for people
  std::string sqlstate;
  int attempts = 0;
  std::string handler;
  std::string handler_version;
  std::string scope;
  const key::Identity* identity = nullptr;  // null: the message has none
  std::optional<std::string> other;  // payload_drift: JSON about the message that has the key
  bool keep_bytes = true;            // false: coordinates and error only
  std::string trace_id = {};         // of the run that gave it up; "": none
};

using LetterHeaders = std::vector<std::pair<std::string, std::optional<std::string>>>;

// As statements return them: [[name, value], …], each in hex, and a value or null.
LetterHeaders letter_headers_of(const Field& headers);

// Inserts the dead letter and returns its id, or nothing if these coordinates have a letter
// already. Bytes go into bytea and text is made storable, so only the message's size can make it
// fail.
// Throws: DatabaseError.
std::optional<std::int64_t> insert_dead_letter(Transaction& transaction, const DeadLetter& letter);

// Call it if insert_dead_letter() found a letter, and the message has run and failed again. It
// opens the letter again, and keeps the newer error beside the first.
void add_failed_again(Transaction& transaction, const DeadLetter& letter);

struct FailedRun {
  const Source& source;
  std::string error;
  std::string sqlstate;
  std::string handler;
  std::chrono::milliseconds wait;
  std::int64_t epoch = 0;  // of the partition, as its worker took it; 0: no worker has it
};

struct FailedRuns {
  int count = 0;
  std::chrono::milliseconds lasting{0};  // from the first of them to the last
};

// Counts a failed run in a transaction of its own, and returns all failed runs of the message. If
// the partition is another worker's by now, it counts and returns nothing.
// Throws: DatabaseError (Phase::account).
std::optional<FailedRuns> record_attempt(Session& session, const FailedRun& run);

// Removes the failed runs of a settled message: added to the transaction's text, or in a
// transaction of its own. Throws: DatabaseError (Phase::account).
void add_forget_attempts(Transaction& transaction, const Source& source);
void forget_attempts(Session& session, const Source& source);

// Cautious mode: commits that the message is about to run, before anything is done with it. Returns
// how often it was announced and not withdrawn, this time included. `epoch`: of its partition (0:
// no worker has it). If the partition is another worker's by now, it announces and returns nothing.
// Throws: DatabaseError (Phase::account).
std::optional<int> announce_run(Session& session, const Source& source, const std::string& handler,
                                std::int64_t epoch);
// Withdraws an announcement, because the run is over and the process lives. If `epoch` is not the
// partition's any more, only this announcement is withdrawn. Throws: DatabaseError
// (Phase::account).
void withdraw_run(Session& session, const Source& source, std::int64_t epoch);

}  // namespace hapax::store
