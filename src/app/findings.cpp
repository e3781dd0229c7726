#include "app/findings.hpp"

#include <algorithm>
#include <exception>

namespace hapax::app {

void Findings::ok(std::string what, std::string found) {
  all_.push_back({Severity::ok, std::move(what), std::move(found), {}});
}

void Findings::warn(std::string what, std::string found, std::string mend) {
  all_.push_back({Severity::warn, std::move(what), std::move(found), std::move(mend)});
}

void Findings::fail(std::string what, std::string found, std::string mend) {
  all_.push_back({Severity::fail, std::move(what), std::move(found), std::move(mend)});
}

void Findings::judge(bool good, std::string what, std::string found, std::string mend) {
  if (good) {
    ok(std::move(what), std::move(found));
  } else {
    fail(std::move(what), std::move(found), std::move(mend));
  }
}

void Findings::attempt(const std::string& what, const std::string& mend,
                       const std::function<void()>& check) {
  try {
    check();
  } catch (const std::exception& error) {
    fail(what, error.what(), mend);
  }
}

bool Findings::any_failed() const {
  return std::ranges::any_of(all_, [](const Finding& f) { return f.severity == Severity::fail; });
}

}  // namespace hapax::app
