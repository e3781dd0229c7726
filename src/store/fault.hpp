// What a failure of PostgreSQL means: one table, by phase and SQLSTATE, never by message text.
//
// One code means different things in different phases. On our own claim, 42P01 is a broken
// installation. In the handler's SQL it is the handler's mistake.
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

// What went wrong, before classify() decides what it means.
struct Fault {
  enum class Kind {
    sql,         // PostgreSQL answered with an error; sqlstate is set if the library shows it
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
  again_reconnected,  // the session is unusable (a stale plan): again on a new one; not counted
  busy,               // another transaction holds the key: later; not counted
  outage,             // PostgreSQL is away or cannot write: wait until it is back; not counted
  in_doubt,           // committed or not: new connection, claim again
  attempt,            // the message's or the handler's: counted
  refused,            // the handler's statement is wrong for every message: halt the route
  transaction_ended,  // the handler committed or rolled back by itself: halt the route, no retry
  halt,               // hapax does not know it: halt the partition
};

FailureClass classify(Phase phase, const Fault& fault);

// Whether a statement that this session prepared is missing, or one exists that it did not prepare.
// Then a pooler shares the session. `sqlstate`: "" if there is none.
bool is_of_a_shared_session(std::string_view sqlstate);

// Whether perhaps only this session is lost: its connection is gone, or PostgreSQL has ended it.
// The outage may be over by now, so only a new connection tells whether PostgreSQL is away.
// `sqlstate`: "" if there was no answer.
bool may_be_a_lost_session(std::string_view sqlstate);

// Whether PostgreSQL reports that its disk is full or broken. That is never the message's fault,
// even if the same message meets it often. A damaged page is not among these: perhaps only one
// message meets it, and that one must not hold up the others for ever. Nor is a missing file
// (58P01), which is the library of a function.
bool is_the_servers(const Fault& fault);

// Whether a COMMIT that ended with this fault may have taken effect. If a statement or a deferred
// trigger failed, it has not. But PostgreSQL may report a cancellation after the COMMIT, and a lost
// connection tells nothing.
bool may_have_committed(const Fault& fault);

// Whether PostgreSQL refuses the values, not the statement: they are too large, or not storable.
bool is_too_much(const Fault& fault);

// Whether PostgreSQL works, and refuses what was asked in Phase::account. It may take what others
// ask.
bool is_refusal(const Fault& fault);

// Whether PostgreSQL cut the connection because its transaction was idle, or open, for too long.
bool is_of_a_transaction_that_took_long(const Fault& fault);

// Whether the transaction was aborted before, by an error that the handler caught.
bool is_aborted(const Fault& fault);

// Whether the session's statements, plans or catalog caches may be older than a migration of the
// handler's tables. Then a column, an enum or an operator has another type than its parameter. Bad
// values and wrong statements give the same errors. Only a new session tells them apart.
bool may_be_stale(const Fault& fault);

// An exception's text, with the texts of the exceptions nested in it.
std::string text_of(const std::exception& error);

// Makes a Fault of libpqxx's exceptions, also of those that left a handler. If an exception that is
// not PostgreSQL's has one of PostgreSQL's nested in it, the nested one counts.
// Precondition: `error` is not null.
Fault fault_of(const std::exception_ptr& error);

const char* name_of(FailureClass failure);

}  // namespace hapax::store
