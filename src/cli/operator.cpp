#include "cli/operator.hpp"

#include <pwd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "cli/output.hpp"
#include "observe/escape.hpp"
#include "store/operator/operator.hpp"
#include "store/operator/roles.hpp"

namespace hapax::app {
namespace {

std::string name_of(const std::string& who) {
  if (!who.empty()) return who;
  if (const char* const user = std::getenv("USER"); user != nullptr && *user != '\0') return user;
  // As in a container, or under cron.
  if (const passwd* const entry = getpwuid(geteuid())) return entry->pw_name;
  return "uid " + std::to_string(geteuid());
}

}  // namespace

void add_operator(CLI::App& command, OperatorOptions& options) {
  command.add_option("--why", options.why, "Kept in hapax.operator_log")
      ->required()
      ->check(reason_error);
  command.add_option("--who", options.who, "Who does it (default: $USER, or this process's user)");
  command.add_option("--url", options.url,
                     "libpq URI of a role that may: the operator, or the owner");
  command.add_flag("--yes", options.yes, "Do not ask");
  command.add_flag("--dry-run", options.dry_run, "Show what would change, and change nothing");
}

std::string line_error(const std::string& text) {
  if (observe::escape_for_terminal(text) == text) return {};
  return "must be one line of text, without characters that control a terminal or reorder text";
}

std::string reason_error(const std::string& why) {
  return why.empty() ? "must not be empty" : line_error(why);
}

std::string operator_name(const std::string& who) {
  std::string name = name_of(who);
  if (const std::string error = line_error(name); !error.empty())
    throw Stop(kUsage, "who does it " + error);
  return name;
}

void confirm(const OperatorOptions& options, const std::string& what, const std::string& effect) {
  if (options.yes) return;
  if (isatty(STDIN_FILENO) == 0)
    throw Stop(kUsage,
               what + ": " + effect + ". There is no terminal to ask on: give --yes to do it");
  print_line(what + ": " + effect + ".");
  std::printf("Do it? [y/N] ");
  std::fflush(stdout);
  std::string answer;
  std::getline(std::cin, answer);
  if (answer != "y" && answer != "yes") throw Stop(kFailed, "nothing was changed");
}

const char* operator_rights() {
  static const std::string text =
      "the operator's rights (" + store::operator_file() + ") or the owner's";
  return text.c_str();
}

std::string advice_after(const store::Fault& fault, const std::string& rights) {
  if (fault.sqlstate == "55P03" || fault.sqlstate.starts_with("40"))
    return "Another transaction holds it: try again";
  if (fault.sqlstate == "57014") return "It took longer than statement_timeout: try again";
  // Not by 42501 alone: libpqxx 6.4.5 does not show that SQLSTATE.
  return "It needs " + rights + ": name such a role with --url";
}

void throw_if_in_doubt(const store::DatabaseError& error, const std::string& letters) {
  using Kind = store::Fault::Kind;
  store::Fault fault = error.fault();
  if (fault.sqlstate.starts_with("57P")) fault.kind = Kind::connection;  // its last words
  if (fault.kind != Kind::connection && fault.kind != Kind::in_doubt) return;
  throw OrderInDoubt({fault.kind, "",
                      "the connection was lost. It is not known whether the order was carried out" +
                          letters +
                          ". If it was, it is in the log: psql \"$OPERATOR\" -c 'SELECT at, who, "
                          "action, target, why FROM hapax.operator_log ORDER BY id DESC LIMIT 5'. "
                          "If it was to move offsets, look in hapax.position_changes"});
}

ExitCode change(const char* role, const std::function<ExitCode()>& action) {
  try {
    return action();
  } catch (const store::Refused& refused) {
    throw Stop(kFailed, refused.what());
  } catch (const OrderInDoubt&) {
    throw;
  } catch (const store::DatabaseError& error) {
    throw_if_in_doubt(error);
    if (error.fault().kind != store::Fault::Kind::sql) throw;
    throw Stop(kFailed, "PostgreSQL: " + std::string(error.what()) + "nothing was changed. " +
                            advice_after(error.fault(), role));
  }
}

}  // namespace hapax::app
