// What a failure of PostgreSQL means: one table, by phase and SQLSTATE, never by message text.
//
// The same code means different things in different phases: 42P01 on our own claim is a broken
// installation, in the handler's SQL it is the handler's mistake.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "hapax/context.hpp"

namespace hapax::store {

enum class Phase {
  connect,
  claim,     // BEGIN and our claim
  handler,   // while the handler runs, and its deferred writes
  complete,  // the completion and COMMIT
  account,   // attempts, dead letters, checkpoints: transactions of our own
};

// What went wrong, before anybody says what it means.
struct Fault {
  enum class Kind {
    sql,         // PostgreSQL answered with an error; sqlstate is set where the library shows it
    connection,  // the connection is gone or could not be made
    in_doubt,    // gone while COMMIT was on its way
    aborted,     // the transaction was aborted earlier (libpqxx 6 shows no SQLSTATE for it)
    other,       // not PostgreSQL's
  };
  Kind kind = Kind::other;
  std::string sqlstate;
  std::string text;

  bool operator==(const Fault&) const = default;
};

// Thrown by everything in store/; a handler sees it as SqlError.
class DatabaseError : public SqlError {
 public:
  explicit DatabaseError(Fault fault, std::string statement = {})
      : SqlError(fault.text, fault.sqlstate, std::move(statement)), kind_(fault.kind) {}
  Fault fault() const { return {kind_, sqlstate(), what()}; }

 private:
  Fault::Kind kind_;
};

enum class FailureClass {
  again,              // run again at once (serialization, deadlock); not counted
  again_reconnected,  // the session is spoilt (a stale plan): again on a new one; not counted
  busy,               // somebody holds the key: later; not counted
  outage,             // PostgreSQL is away or cannot write: wait until it is back; not counted
  in_doubt,           // committed or not: new connection, claim again
  attempt,            // the message's or the handler's: counted
  refused,            // the handler's statement is wrong for every message: halt the route
  transaction_ended,  // the handler committed or rolled back by itself: halt the route, no retry
  halt,               // nothing we know: halt the partition
};

FailureClass classify(Phase phase, const Fault& fault);

// A statement that this session prepared is not there, or one is that it did not: a pooler shares
// its sessions. `sqlstate`: or "".
bool is_of_a_shared_session(std::string_view sqlstate);

// Whether only this session may be lost: its connection is gone, or PostgreSQL has ended it. That
// may be from an outage that is over by now, so only a new connection tells whether PostgreSQL is
// away. `sqlstate`: or "" if there was no answer.
bool may_be_a_lost_session(std::string_view sqlstate);

// PostgreSQL answers that its disk is full or broken: never the message's doing, however often it
// is met with the same one. A damaged page is not of these: it may be met by one message only,
// which then must not hold up the others for ever. Nor is a file that is missing (58P01): that is
// the library of a function.
bool is_the_servers(const Fault& fault);

// Whether a COMMIT that ended so may have been done. An error of a statement or of a deferred
// trigger comes before it. But a cancellation may be answered behind it, and a lost connection
// tells nothing.
bool may_have_committed(const Fault& fault);

// PostgreSQL refuses the values, not the statement: more than it can take, or not storable.
bool is_too_much(const Fault& fault);

// PostgreSQL cut a connection whose transaction was idle, or open, for too long.
bool is_of_a_transaction_that_took_long(const Fault& fault);

// The transaction was aborted before this, by an error that the handler caught.
bool is_aborted(const Fault& fault);

// What a session answers whose statements, plans or catalog caches are from before a migration of
// the handler's tables: a column, an enum or an operator of another type than its parameter's. Bad
// values and wrong statements are answered the same; a new session tells them apart.
bool may_be_stale(const Fault& fault);

// An exception's text, and those of the exceptions nested in it.
std::string text_of(const std::exception& error);

// Reads libpqxx's exceptions (also those that a handler let pass) into a Fault. An exception that
// is not PostgreSQL's, with one of PostgreSQL's nested in it, is read as that one.
// Precondition: `error` is not null.
Fault fault_of(const std::exception_ptr& error);

const char* name_of(FailureClass failure);

}  // namespace hapax::store
