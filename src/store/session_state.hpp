// What a Session is inside: libpqxx's connection and what is known about it. Only for store/*.cpp.
#pragma once

#include <chrono>
#include <deque>
#include <pqxx/pqxx>
#include <string>
#include <unordered_map>

#include "store/session.hpp"

namespace hapax::store {

struct Session::State {
  explicit State(const std::string& conninfo) : connection(conninfo) {}

  void prepare(const std::string& name, const std::string& text) {
    connection.prepare(name, text);
#if PQXX_VERSION_MAJOR < 7
    connection.prepare_now(name);  // 6 is lazy, and a joined EXECUTE would not find it
#endif
  }

  pqxx::connection connection;
  std::unordered_map<const Statement*, bool> prepared;
  std::unordered_map<std::string, UserStatement> user_statements;  // by text
  std::deque<std::string> user_order;                              // texts, oldest first
  std::string settings;                            // to be set again after RESET ALL
  std::string lock_timeout;                        // of them, in milliseconds
  std::chrono::milliseconds statement_timeout{0};  // of them
  bool has_epochs = false;                         // a schema from 16 on
  Leaves left_behind = Leaves::nothing;
  std::string nonce_prefix;
  std::uint64_t nonce_count = 0;
};

// Rethrows what libpqxx threw as ours. Inside a catch block only.
[[noreturn]] inline void rethrow(const pqxx::connection& connection, std::string statement) {
  Fault fault = fault_of(std::current_exception());
  // libpqxx 6 trips over a lost connection while it reports it ("could not obtain encoding").
  if (fault.kind == Fault::Kind::other && !connection.is_open())
    fault.kind = Fault::Kind::connection;
  if (fault.sqlstate == "22021")
    fault.text.erase(fault.text.find_last_not_of('\n') + 1) +=
        ". Text is UTF-8 without a NUL byte; pass other bytes with hapax::Parameter::bytes";
  throw DatabaseError(fault, std::move(statement));
}

}  // namespace hapax::store
