#include "payload/framing.hpp"

#include <optional>

#include "key/sha256.hpp"
#include "payload/varint.hpp"

namespace hapax::payload {
namespace {

constexpr std::string_view kHeader = "__value_schema_id";
constexpr std::size_t kMaxIndexes = 64;  // as deep as messages may be declared in each other

std::string guid_text(std::string_view bytes) {
  std::string text = key::hex(bytes);
  for (const std::size_t at : {8u, 13u, 18u, 23u}) text.insert(at, "-");
  return text;
}

bool read_indexes(std::string_view& bytes, std::vector<int>& indexes) {
  const auto count = read_zigzag(bytes);
  if (!count || *count < 0 || static_cast<std::size_t>(*count) > kMaxIndexes) return false;
  for (std::int64_t i = 0; i < *count; ++i) {
    const auto index = read_zigzag(bytes);
    if (!index || *index < 0 || *index > 1'000'000) return false;
    indexes.push_back(static_cast<int>(*index));
  }
  if (indexes.empty()) indexes.push_back(0);
  return true;
}

// Takes the id off the front. Nothing: there is none.
std::optional<Framed> read_id(std::string_view& bytes) {
  Framed framed;
  if (bytes.size() >= 5 && bytes[0] == 0) {
    std::uint32_t id = 0;
    for (const char byte : bytes.substr(1, 4)) id = id << 8 | static_cast<unsigned char>(byte);
    framed.schema = "/schemas/ids/" + std::to_string(id);
    bytes.remove_prefix(5);
  } else if (bytes.size() >= 17 && bytes[0] == 1) {
    framed.schema = "/schemas/guids/" + guid_text(bytes.substr(1, 16));
    bytes.remove_prefix(17);
  } else {
    return std::nullopt;
  }
  return framed;
}

}  // namespace

std::variant<Framed, NotFramed> unframe(const Message& message, bool has_indexes) {
  std::optional<std::string_view> id;
  for (const Header& header : message.headers()) {
    if (header.name != kHeader || !header.value) continue;
    if (id && *id != *header.value)
      return NotFramed{"the header " + std::string(kHeader) +
                       " comes more than once, with different values"};
    id = header.value;
  }
  std::string_view payload = *message.payload();
  std::string_view& framing = id ? *id : payload;
  auto framed = read_id(framing);
  if (!framed && !id)
    return NotFramed{"the payload does not begin with the id of a schema, and there is no header " +
                     std::string(kHeader)};
  if (framed && has_indexes && !read_indexes(framing, framed->indexes))
    return NotFramed{"behind the id of the schema there are no indexes of a Protobuf message"};
  if (!framed || (id && !id->empty()))
    return NotFramed{"the header " + std::string(kHeader) + " is not the id of a schema"};
  framed->body = payload;
  return *std::move(framed);
}

}  // namespace hapax::payload
