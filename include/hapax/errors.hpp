// What a handler throws, and what it meets if PostgreSQL refuses a statement.
#pragma once

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace hapax {

// A handler throws it if this message can never work. hapax rolls the transaction back, does not
// try the message again, and keeps the whole message in hapax.dead_letters with this text.
class Reject : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Message::json() and Message::as() throw it: the payload is null, is not JSON, nests too deep, or
// does not fit the type.
class BadPayload : public Reject {
 public:
  using Reject::Reject;
};

// A handler throws it to try the message again later. It counts as an attempt: after the route's
// `retry.max_attempts` the message becomes a dead letter. `after` replaces the route's wait after
// this attempt. `retry.max` does not bound it; it is at most 365 days, and a negative one counts as
// 0. Later messages of the same order key wait, too.
class Retry : public std::runtime_error {
 public:
  explicit Retry(const std::string& why,
                 std::optional<std::chrono::milliseconds> after = std::nullopt)
      : std::runtime_error(why), after_(after) {}
  std::optional<std::chrono::milliseconds> after() const { return after_; }

 private:
  std::optional<std::chrono::milliseconds> after_;
};

// PostgreSQL refused a statement. hapax classifies the error by SQLSTATE, never by text.
class SqlError : public std::runtime_error {
 public:
  SqlError(const std::string& what, std::string sqlstate, std::string statement)
      : std::runtime_error(what),
        sqlstate_(std::move(sqlstate)),
        statement_(std::move(statement)) {}
  // Five characters, or empty if the connection was lost.
  const std::string& sqlstate() const { return sqlstate_; }
  // The text that PostgreSQL refused, or "". It may hold several statements with their values, so
  // it may quote the message.
  const std::string& statement() const { return statement_; }

 private:
  std::string sqlstate_;
  std::string statement_;
};

}  // namespace hapax
