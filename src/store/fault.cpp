#include "store/fault.hpp"

#include <algorithm>
#include <pqxx/pqxx>
#include <string_view>

namespace hapax::store {
namespace {

// A row of the table. A state of two characters stands for its whole class. The first row that fits
// wins, so exact codes come before their class.
struct Rule {
  std::string_view state;
  FailureClass meaning;
};

using enum FailureClass;

// These mean the same in every phase. None of them is the message's fault.
constexpr Rule kEveryPhase[] = {
    {"40001", again},              // serialization_failure
    {"40P01", again},              // deadlock_detected
    {"40003", in_doubt},           // statement_completion_unknown
    {"08", outage},                // connection exceptions
    {"57P01", outage},             // admin_shutdown
    {"57P02", outage},             // crash_shutdown
    {"57P03", outage},             // cannot_connect_now
    {"57P04", outage},             // database_dropped
    {"57P05", outage},             // idle_session_timeout: the connection is gone
    {"25P03", outage},             // idle_in_transaction_session_timeout: likewise
    {"25P04", outage},             // transaction_timeout: likewise
    {"53", outage},                // out of disk, memory or connections
    {"58", outage},                // I/O errors outside PostgreSQL
    {"XX001", outage},             // data_corrupted: an operator's case, never the message's
    {"XX002", outage},             // index_corrupted
    {"HX001", transaction_ended},  // COMMIT refused: a claim without its completion
    {"HX002", transaction_ended},  // completion refused: the claiming transaction is gone
};

constexpr Rule kConnect[] = {
    {"28", outage},  // credentials: the log names them until an operator fixes them
    {"3D", outage},  // the database does not exist (yet)
    {"42", outage},  // not allowed to connect, or a setting that this server does not know
};

constexpr Rule kClaim[] = {
    {"25006", outage},             // a standby, or a server made read-only
    {"0A000", again_reconnected},  // cached plan must not change result type: after a migration
    {"26000", again_reconnected},  // our prepared statement is gone (DISCARD ALL, a pooler)
    {"42P05", again_reconnected},  // it is there already: another client's session (a pooler)
    {"23505", again},              // a replay settled the position meanwhile
    {"55P03", busy},               // lock_timeout: another transaction holds the key
    {"57014", busy},               // statement_timeout while waiting for it
};

// The caller has called refuse_ended() first, so the transaction is still the one that claimed. So
// 25006 means that the handler made it read-only.
constexpr Rule kHandler[] = {
    {"26000", again_reconnected},
    {"42P05", again_reconnected},
    {"42P03", attempt},  // the name exists already: an earlier message of the batch
    {"42P04", attempt},  // made it, or the name comes from the message
    {"42P06", attempt},  //
    {"42P07", attempt},  //
    {"42701", attempt},  //
    {"42710", attempt},  //
    {"42723", attempt},  //
    {"42", refused},     // no such table, column, function or right
    {"58P01", refused},  // the library of a function is not installed
};

// Nothing takes effect before PostgreSQL answers COMMIT, so an unknown state is the message's
// failure.
constexpr Rule kComplete[] = {
    {"26000", again_reconnected},
    {"42P05", again_reconnected},
    {"58P01", attempt},  // the library of a deferred trigger's function
};

constexpr Rule kAccount[] = {
    {"25006", outage},
    {"0A000", again_reconnected},
    {"26000", again_reconnected},
    {"42P05", again_reconnected},
    {"55P03", busy},
    {"57014", busy},
};

struct PhaseTable {
  const Rule* begin;
  const Rule* end;
  FailureClass sql_default;  // an SQLSTATE that is in no row
  FailureClass gone;         // the connection broke
  FailureClass other;        // an exception that is not PostgreSQL's
};

PhaseTable table_of(Phase phase) {
  switch (phase) {
    case Phase::connect: return {std::begin(kConnect), std::end(kConnect), outage, outage, halt};
    case Phase::claim: return {std::begin(kClaim), std::end(kClaim), halt, outage, halt};
    case Phase::handler:
      return {std::begin(kHandler), std::end(kHandler), attempt, outage, attempt};
    case Phase::complete:
      // If a COPY fails in its destructor, libpqxx 6 keeps the error, and throws it here as its
      // own.
      return {std::begin(kComplete), std::end(kComplete), attempt, in_doubt, attempt};
    case Phase::account: return {std::begin(kAccount), std::end(kAccount), halt, outage, halt};
  }
  return {nullptr, nullptr, halt, halt, halt};
}

const Rule* rule_for(const Rule* begin, const Rule* end, std::string_view state) {
  for (const Rule* rule = begin; rule != end; ++rule)
    if (state.substr(0, rule->state.size()) == rule->state) return rule;
  return nullptr;
}

}  // namespace

FailureClass classify(Phase phase, const Fault& fault) {
  const PhaseTable table = table_of(phase);
  if (!fault.sqlstate.empty()) {
    if (const Rule* rule = rule_for(table.begin, table.end, fault.sqlstate)) return rule->meaning;
    if (const Rule* rule = rule_for(std::begin(kEveryPhase), std::end(kEveryPhase), fault.sqlstate))
      return rule->meaning;
    return table.sql_default;
  }
  switch (fault.kind) {
    case Fault::Kind::connection: return table.gone;
    case Fault::Kind::in_doubt: return in_doubt;
    case Fault::Kind::aborted:
      return phase == Phase::handler || phase == Phase::complete ? attempt : halt;
    case Fault::Kind::sql: return table.sql_default;
    case Fault::Kind::other: return table.other;
  }
  return halt;
}

bool is_of_a_shared_session(std::string_view sqlstate) {
  return sqlstate == "26000" || sqlstate == "42P05";
}

bool may_be_a_lost_session(std::string_view sqlstate) {
  return sqlstate.empty() || sqlstate.starts_with("57P");
}

bool is_the_servers(const Fault& fault) {
  constexpr std::string_view kStates[] = {"53100", "58000", "58030"};
  return std::ranges::any_of(
      kStates, [&](std::string_view state) { return fault.sqlstate.starts_with(state); });
}

bool is_of_a_transaction_that_took_long(const Fault& fault) {
  return fault.sqlstate == "25P03" || fault.sqlstate == "25P04";
}

bool is_aborted(const Fault& fault) {
  return fault.kind == Fault::Kind::aborted || fault.sqlstate == "25P02";
}

bool may_be_stale(const Fault& fault) {
  constexpr std::string_view kStates[] = {"0A000", "22", "42", "XX000"};
  return std::ranges::any_of(
      kStates, [&](std::string_view state) { return fault.sqlstate.starts_with(state); });
}

bool may_have_committed(const Fault& fault) {
  if (fault.kind == Fault::Kind::aborted) return false;
  if (fault.kind != Fault::Kind::sql || fault.sqlstate.empty()) return true;
  constexpr std::string_view kBehind[] = {"57", "58", "53", "XX", "40003"};
  return std::ranges::any_of(
      kBehind, [&](std::string_view state) { return fault.sqlstate.starts_with(state); });
}

bool is_too_much(const Fault& fault) {
  constexpr std::string_view kStates[] = {"22", "54", "XX000"};  // XX000: "invalid memory alloc"
  return std::ranges::any_of(
      kStates, [&](std::string_view state) { return fault.sqlstate.starts_with(state); });
}

bool is_refusal(const Fault& fault) {
  const FailureClass failure = classify(Phase::account, fault);
  return fault.kind == Fault::Kind::sql && (failure == busy || failure == halt);
}

namespace {

// libpqxx 7 adds the name of the prepared statement, which is hapax's own.
std::string without_wrapper(std::string text) {
  constexpr std::string_view kBegins = "Failure during '[PREPARE ", kEnds = "]': ";
  const std::size_t end = text.find(kEnds);
  if (text.starts_with(kBegins) && end != std::string::npos) text.erase(0, end + kEnds.size());
  return text;
}

constexpr int kDeepest = 16;  // of exceptions nested in each other

std::string said_by(const std::exception& error) {
  const char* const what = error.what();  // of a handler's own class, so it may be null
  return what == nullptr ? "an exception whose what() is null" : what;
}

std::exception_ptr nested_in(const std::exception& error) {
  const auto* const nested = dynamic_cast<const std::nested_exception*>(&error);
  return nested == nullptr ? nullptr : nested->nested_ptr();
}

Fault fault_at(const std::exception_ptr& error, int depth);

// The inner exception decides the class: a deadlock stays one inside the handler's own exception.
Fault with_nested(Fault fault, const std::exception& error, int depth) {
  const std::exception_ptr inner = depth < kDeepest ? nested_in(error) : nullptr;
  if (!inner) return fault;
  Fault nested = fault_at(inner, depth + 1);
  fault.text += ": " + nested.text;
  if (fault.kind != Fault::Kind::other) return fault;
  nested.text = std::move(fault.text);
  return nested;
}

Fault fault_at(const std::exception_ptr& error, int depth) {
  using Kind = Fault::Kind;
  try {
    std::rethrow_exception(error);
  } catch (const DatabaseError& e) {
    return with_nested(e.fault(), e, depth);
  } catch (const SqlError& e) {  // a copy that the handler made, or one of its own
    const Kind kind = e.sqlstate().empty() ? Kind::connection : Kind::sql;
    return with_nested({kind, e.sqlstate(), said_by(e)}, e, depth);
  } catch (const pqxx::in_doubt_error& e) {
    return {Kind::in_doubt, "", said_by(e)};
  } catch (const pqxx::broken_connection& e) {
    return {Kind::connection, "", said_by(e)};
  } catch (const pqxx::deadlock_detected& e) {
    // libpqxx 6 gives these three no SQLSTATE, and does not derive them from sql_error.
    return {Kind::sql, "40P01", said_by(e)};
  } catch (const pqxx::serialization_failure& e) {
    return {Kind::sql, "40001", said_by(e)};
  } catch (const pqxx::statement_completion_unknown& e) {
    return {Kind::sql, "40003", said_by(e)};
  } catch (const pqxx::transaction_rollback& e) {
    return {Kind::sql, "40000", said_by(e)};
  } catch (const pqxx::insufficient_privilege& e) {
    return {Kind::sql, "42501", said_by(e)};  // libpqxx 6 leaves its SQLSTATE empty
  } catch (const pqxx::sql_error& e) {
    return {Kind::sql, e.sqlstate(), without_wrapper(said_by(e))};
  } catch (const pqxx::usage_error& e) {
    return {Kind::aborted, "", said_by(e)};
  } catch (const std::exception& e) {
    return with_nested({Kind::other, "", said_by(e)}, e, depth);
  } catch (...) {
    return {Kind::other, "", "an exception that is not a std::exception"};
  }
}

}  // namespace

Fault fault_of(const std::exception_ptr& error) { return fault_at(error, 0); }

std::string text_of(const std::exception& error) {
  return with_nested({Fault::Kind::other, "", said_by(error)}, error, 0).text;
}

const char* name_of(FailureClass failure) {
  switch (failure) {
    case again: return "again";
    case again_reconnected: return "again_reconnected";
    case busy: return "busy";
    case outage: return "outage";
    case in_doubt: return "in_doubt";
    case attempt: return "attempt";
    case refused: return "refused";
    case transaction_ended: return "transaction_ended";
    case halt: return "halt";
  }
  return "unknown";
}

}  // namespace hapax::store
