#include "key/exact_json.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "hapax/message.hpp"
#include "key/exact_number.hpp"

namespace hapax::key {
namespace {

using nlohmann::json;

constexpr int kNumberOverflow = 406;  // nlohmann's id of "number overflow parsing"

// Builds the value from nlohmann's events. Returning false ends the parse; `why` then holds the
// reason. If the event has no position of its own, parse_exact() cannot name one.
class Builder final : public json::json_sax_t {
 public:
  json value;
  std::optional<std::string> why;

  bool null() override { return put(nullptr); }
  bool boolean(bool truth) override { return put(truth); }
  bool number_integer(number_integer_t number) override { return put(number); }
  bool number_unsigned(number_unsigned_t number) override { return put(number); }
  bool string(string_t& text) override { return put(std::move(text)); }
  bool binary(binary_t&) override { return refuse("it is not text"); }

  bool number_float(number_float_t, const string_t& text) override {
    const auto canonical = canonical_number(text);
    if (!canonical) return refuse("a number has an exponent of more than 18 digits");
    return put(json::binary(std::vector<std::uint8_t>(canonical->begin(), canonical->end())));
  }

  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    const auto [place, fresh] =
        open_.back()->get_ref<json::object_t&>().emplace(std::move(name), nullptr);
    member_ = &place->second;
    return fresh || refuse("an object has the same member name twice");
  }

  bool parse_error(std::size_t position, const std::string&,
                   const json::exception& error) override {
    const std::string at = " (byte " + std::to_string(position) + ")";
    return refuse((error.id == kNumberOverflow ? "a number is too large for a double"
                                               : "a syntax error or invalid UTF-8") +
                  at);
  }

 private:
  bool refuse(std::string reason) {
    why = std::move(reason);
    return false;
  }

  // The place of the next value. A pointer in open_ stays good: a container does not grow while one
  // inside it is open.
  json& place() {
    if (open_.empty()) return value;
    if (open_.back()->is_object()) return *member_;
    auto& array = open_.back()->get_ref<json::array_t&>();
    return array.emplace_back();
  }

  template <typename Value>
  bool put(Value&& new_value) {
    place() = std::forward<Value>(new_value);
    return true;
  }

  bool open(json&& container) {
    if (open_.size() == kMaxJsonDepth)
      return refuse("it nests deeper than " + std::to_string(kMaxJsonDepth) + " levels");
    json& target = place();
    target = std::move(container);
    open_.push_back(&target);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::vector<json*> open_;
  json* member_ = nullptr;
};

}  // namespace

std::variant<json, NotJson> parse_exact(std::string_view text) {
  // nlohmann takes a NUL byte between tokens for the end and ignores everything behind it. Two
  // payloads that differ only there would then be one. JSON has no raw NUL anywhere.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos)
    return NotJson{"a NUL (byte " + std::to_string(nul + 1) + ")"};
  Builder builder;
  if (json::sax_parse(text, &builder)) return std::move(builder.value);
  return NotJson{std::move(builder.why).value_or("a syntax error")};
}

bool is_exact_number(const json& value) { return value.is_number_integer() || value.is_binary(); }

std::string number_text(const json& value) {
  if (value.is_number_unsigned()) return std::to_string(value.get<std::uint64_t>());
  if (value.is_number_integer()) return std::to_string(value.get<std::int64_t>());
  const auto& text = value.get_binary();
  return std::string(text.begin(), text.end());
}

}  // namespace hapax::key
