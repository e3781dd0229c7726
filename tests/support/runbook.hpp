// Types what a page tells an operator to type, so that a runbook cannot be wrong for long.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/site.hpp"

namespace hapax::support {

// A section of docs/runbooks.md, typed block by block. The page calls group and topic "payments":
// here they are the site's.
class Runbook {
 public:
  // `heading`: "## Erasing personal data". `variables`: of the shell, such as {"OWNER", url}.
  // Throws: std::runtime_error if the page has nothing to type there.
  Runbook(const std::string& heading, const Site& site,
          std::map<std::string, std::string> variables);
  // A section of another page, each block as `changed` returns it; no names are replaced.
  using Change = std::function<std::string(std::string)>;
  Runbook(const std::string& page, const std::string& heading,
          std::map<std::string, std::string> variables, const Change& changed);
  // Fails the test if not each block was typed.
  ~Runbook();
  Runbook(const Runbook&) = delete;
  Runbook& operator=(const Runbook&) = delete;

  // For blocks from here on.
  void set(const std::string& variable, const std::string& value);

  // The next block, in a shell that stops at the first failure. It runs in `folder`, which holds
  // worker.json, with this hapax in PATH, and with the tree's files in the place of the installed.
  // Fails the test if its exit code is not 0. Returns what it printed.
  // Throws: std::runtime_error if it ends by a signal or not in time.
  std::string type_next(const std::filesystem::path& folder);
  // The next block, for a test that types it by itself.
  std::string take_next() { return blocks_.at(typed_++); }

 private:
  std::string heading_;
  std::vector<std::string> blocks_;
  std::map<std::string, std::string> variables_;
  std::size_t typed_ = 0;
};

}  // namespace hapax::support
