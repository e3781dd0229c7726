#include "app/findings.hpp"

#include <algorithm>
#include <exception>
#include <sstream>

#include "cli/command.hpp"

namespace hapax::app {

void Findings::ok(std::string what, std::string found) {
  all_.push_back({Severity::ok, std::move(what), std::move(found), {}});
}

void Findings::warn(std::string what, std::string found, std::string fix) {
  all_.push_back({Severity::warn, std::move(what), std::move(found), std::move(fix)});
}

void Findings::fail(std::string what, std::string found, std::string fix) {
  all_.push_back({Severity::fail, std::move(what), std::move(found), std::move(fix)});
}

void Findings::judge(bool good, std::string what, std::string found, std::string fix) {
  if (good) {
    ok(std::move(what), std::move(found));
  } else {
    fail(std::move(what), std::move(found), std::move(fix));
  }
}

void Findings::attempt(const std::string& what, const std::string& fix,
                       const std::function<void()>& check) {
  try {
    check();
  } catch (const std::exception& error) {
    const auto* const stop = dynamic_cast<const Stop*>(&error);
    if (stop != nullptr && stop->code() == kConfigWrong) has_wrong_configuration_ = true;
    std::istringstream lines(error.what());
    std::vector<std::string> all;
    for (std::string line; std::getline(lines, line);)
      if (!line.empty()) all.push_back(line);
    // A first line with a colon at its end only announces the others.
    const std::size_t first = all.size() > 1 && all.front().ends_with(':') ? 1 : 0;
    for (std::size_t i = first; i < all.size(); ++i) fail(what, all[i], fix);
  }
}

bool Findings::any_failed() const {
  return std::ranges::any_of(all_, [](const Finding& f) { return f.severity == Severity::fail; });
}

}  // namespace hapax::app
