// An Avro schema, resolved: each name is replaced by the type that it names.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "payload/decoder.hpp"

namespace hapax::payload {

struct AvroType {
  enum class Kind {
    null,
    boolean,
    int32,
    int64,
    float32,
    float64,
    bytes,
    string,
    record,
    enumeration,
    array,
    map,
    fixed,
    choice,  // a union
  };
  Kind kind = Kind::null;
  std::string name;                    // as a union's branch: "long", "org.example.Payment"
  std::vector<std::string> names;      // record: of the fields, as JSON; enumeration: symbols, too
  std::vector<const AvroType*> parts;  // record: of the fields; choice: branches; array, map: one
  std::size_t size = 0;                // fixed: bytes
  bool is_decimal = false;             // bytes, fixed: logicalType decimal
  int scale = 0;                       // decimal: digits behind the point
  bool is_named = false;               // choice: more than one branch that is not null
};

// Thread safety: immutable.
class AvroSchema {
 public:
  // Throws: NotDecodable, if it is no Avro schema.
  explicit AvroSchema(const SchemaText& schema);
  AvroSchema(const AvroSchema&) = delete;
  AvroSchema& operator=(const AvroSchema&) = delete;

  const AvroType& root() const { return *root_; }

 private:
  const AvroType* read(const nlohmann::json& node, const std::string& space, int depth);
  const AvroType* read_named(const nlohmann::json& node, const std::string& space, int depth);
  void read_record(const nlohmann::json& node, AvroType& type, const std::string& space, int depth);
  const AvroType* read_union(const nlohmann::json& node, const std::string& space, int depth);
  const AvroType* find(const std::string& name, const std::string& space) const;
  AvroType& add(AvroType::Kind kind, std::string name);

  std::deque<AvroType> types_;  // addresses stay
  std::map<std::string, const AvroType*> named_;
  const AvroType* root_ = nullptr;
};

}  // namespace hapax::payload
