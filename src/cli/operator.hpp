// What all commands that change something share: who does it, why, and a question before it.
#pragma once

#include <functional>
#include <string>

#include "cli/command.hpp"
#include "store/fault.hpp"

namespace hapax::app {

struct OperatorOptions {
  std::string url, why, who;
  bool yes = false;
  bool dry_run = false;
};
// --why (needed), --who, --url, --yes and --dry-run.
void add_operator(CLI::App& command, OperatorOptions& options);

// Why a name or a reason is not kept: a part of a sentence, or "" if it is. psql shows a line break
// in the operators' log as a row, and sends an escape to the terminal.
std::string line_error(const std::string& text);
// As line_error(), for a reason, which must not be empty.
std::string reason_error(const std::string& why);

// `who`; if it is empty $USER, or the name or number of the user of this process.
// Throws: Stop(kUsage), see line_error().
std::string operator_name(const std::string& who);

// Asks the operator, and returns if the operator agrees: by --yes, or "y" on a terminal. `effect`:
// "…, so …".
// Throws: Stop(kUsage) if there is no terminal, Stop(kFailed) if the answer is no.
void confirm(const OperatorOptions& options, const std::string& what, const std::string& effect);

// "the operator's rights (…/operator.psql) or the owner's", with the file's path.
const char* operator_rights();

// What an operator does if PostgreSQL has refused a change: tries again, or gets these rights.
std::string advice_after(const store::Fault& fault, const std::string& rights);

// The connection ended while an order was under way. The text tells how to see what came of it.
struct OrderInDoubt : store::DatabaseError {
  using DatabaseError::DatabaseError;
};
// Throws: OrderInDoubt if `error` means that. `letters`: about which it is in doubt, if not about
// all.
void throw_if_in_doubt(const store::DatabaseError& error, const std::string& letters = "");

// Runs a change. If PostgreSQL refuses it, names the rights that it needs.
// Throws: Stop(kFailed) for store::Refused and for a refusal of PostgreSQL's; OrderInDoubt;
//   DatabaseError.
ExitCode change(const char* role, const std::function<ExitCode()>& action);

}  // namespace hapax::app
