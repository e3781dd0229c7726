// The least that a configuration may hold, and short ways to load it with a change.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "config/load.hpp"

namespace hapax::config {

using Variables = std::map<std::string, std::string>;

inline nlohmann::json minimal() {
  return nlohmann::json::parse(R"({
    "kafka": {"bootstrap.servers": "kafka:9092", "group.id": "payments"},
    "postgres": {"url": "postgresql:///payments"},
    "routes": [{"topic": "payments", "handler": "book", "key": {"header": "idempotency-key"}}]
  })");
}

inline Environment environment(Variables variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

inline Loaded load(const nlohmann::json& document, Variables variables = {}) {
  return load_text(document.dump(), environment(std::move(variables)));
}

// The minimal document with one value set, by its JSON pointer.
inline nlohmann::json with(const std::string& pointer, nlohmann::json value) {
  nlohmann::json document = minimal();
  document[nlohmann::json::json_pointer(pointer)] = std::move(value);
  return document;
}

// All messages about the problems at one path; "" if there is none.
inline std::string problem_at(const Loaded& loaded, const std::string& path) {
  std::string messages;
  for (const Problem& problem : loaded.problems)
    if (problem.path == path) messages += problem.message;
  return messages;
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A file of the source tree, by its path in it.
inline std::string source_file(const std::string& path) {
  std::ifstream file(std::string(HAPAX_SOURCE_DIR) + "/" + path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A file of its own that is gone at the end of the test.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& content, mode_t mode) {
    const int file = mkstemp(path_.data());
    const bool written =
        file >= 0 && fchmod(file, mode) == 0 &&
        write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size());
    if (file >= 0) close(file);
    if (!written) throw std::runtime_error("cannot write " + path_);
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/hapax-config-XXXXXX";
};

}  // namespace hapax::config
