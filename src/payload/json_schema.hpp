// Checks a payload against a JSON Schema (draft 7, by valijson).
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace hapax::payload {

// "uniqueItems" compares the elements of an array with each other. A payload may have so many pairs
// at most, because more would keep a lane busy for minutes.
inline constexpr std::size_t kMaxPairs = 10'000'000;

// Thread safety: immutable.
class JsonSchema {
 public:
  // Throws: std::runtime_error: why hapax cannot check by this text, and how to fix it.
  explicit JsonSchema(std::string_view text);
  ~JsonSchema();
  JsonSchema(const JsonSchema&) = delete;
  JsonSchema& operator=(const JsonSchema&) = delete;

  // The JSON pointer of the first value that violates the schema, and what it violates; a sentence
  // for people. Nothing: the document conforms. Throws: std::bad_alloc.
  std::optional<std::string> violation(nlohmann::json document) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

// Reads the schema from a file. Throws: std::runtime_error that names the file. Blocks: on the file
// system.
std::shared_ptr<const JsonSchema> read_json_schema(const std::string& path);

}  // namespace hapax::payload
