// The kit's values as text.
#include <algorithm>
#include <ostream>

#include "hapax/testing.hpp"

namespace hapax::testing {

const char* name_of(Result result) {
  switch (result) {
    case Result::completed: return "completed";
    case Result::duplicate: return "duplicate";
    case Result::failed: return "failed";
    case Result::skipped: return "skipped";
    case Result::waiting: return "waiting";
    case Result::halted: return "halted";
  }
  return "unknown";
}

const char* name_of(CrashPoint point) {
  switch (point) {
    case CrashPoint::claimed: return "claimed";
    case CrashPoint::handled: return "handled";
    case CrashPoint::committed: return "committed";
  }
  return "unknown";
}

std::string Outcome::text() const {
  std::string text = name_of(result);
  if (reason.empty() && detail.empty()) return text;
  text += " (" + reason + (reason.empty() || detail.empty() ? "" : ": ") + detail;
  text.erase(text.find_last_not_of('\n') + 1);  // PostgreSQL's text ends with one
  if (!sqlstate.empty()) text += ", SQLSTATE " + sqlstate;
  if (attempts > 0) text += ", attempts: " + std::to_string(attempts);
  return text + ")";
}

bool Report::passed() const {
  return std::ranges::all_of(ways, [](const Way& way) { return way.problems.empty(); });
}

std::string Report::text() const {
  std::string text = passed() ? "the message takes effect exactly once:\n"
                              : "the message does not take effect exactly once:\n";
  for (const Way& way : ways) {
    text += (way.problems.empty() ? "  ok      " : "  WRONG   ") + way.name + "\n";
    for (const std::string& problem : way.problems) text += "          - " + problem + "\n";
  }
  if (varying.empty()) return text;
  text += "times, not compared:";
  for (const std::string& column : varying) text += " " + column;
  return text + "\n";
}

std::ostream& operator<<(std::ostream& out, Result result) { return out << name_of(result); }

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << outcome.text();
}

std::ostream& operator<<(std::ostream& out, const Report& report) { return out << report.text(); }

}  // namespace hapax::testing
