// SQL parameters and result rows of a handler. A handler compiles without libpqxx. Nothing here
// blocks.
#pragma once

#include <charconv>
#include <cmath>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace hapax {

// One value for a $n of a statement, as text that PostgreSQL reads into the parameter's type.
//
// Made from:
// - text: UTF-8 without NUL, or one char; a const char* that is null is NULL;
// - numbers, bool, and enums (their number);
// - bytes, for bytea;
// - JSON: a string gives its text, null gives NULL, all else its JSON text;
// - std::optional of these, and nullptr.
// No other pointer compiles.
//
// If a text holds a NUL or is not UTF-8, the statement that uses it throws SqlError (22021).
// Throws: nlohmann::json::type_error if a text inside a JSON array or object is not UTF-8.
// Thread safety: as std::string.
class Parameter {
 public:
  Parameter(std::nullptr_t) {}
  Parameter(std::nullopt_t) {}
  template <std::same_as<bool> Bool>  // or every pointer, char and enum would be one
  Parameter(Bool value) : text_(value ? "t" : "f") {}
  template <std::same_as<char> Char>
  Parameter(Char value) : text_(std::string(1, value)) {}
  template <class Number>
  requires(std::is_arithmetic_v<Number> && !std::same_as<Number, bool> &&
           !std::same_as<Number, char>) Parameter(Number value)
      : text_(number_text(value)) {}
  Parameter(std::string value) : text_(std::move(value)) {}
  Parameter(std::string_view value) : text_(value) {}
  Parameter(const char* value) {
    if (value != nullptr) text_ = value;
  }
  // An array of anything but text and bytes would become JSON. See also bytes().
  template <class Element, std::size_t kSize>
  requires(!std::same_as<Element, char> && !std::same_as<Element, std::byte>)
      Parameter(const Element (&)[kSize])
  = delete;
  template <std::size_t kSize>
  Parameter(const std::byte (&bytes)[kSize]) : Parameter(std::span<const std::byte>(bytes)) {}
  Parameter(std::span<const std::byte> bytes) : text_(bytea_text(bytes)) {}
  [[gnu::visibility("hidden")]] Parameter(const nlohmann::json& value) {
    if (value.is_string()) {
      text_ = value.get_ref<const std::string&>();
    } else if (value.is_number_unsigned()) {
      text_ = number_text(value.get<std::uint64_t>());
    } else if (value.is_number_integer()) {
      text_ = number_text(value.get<std::int64_t>());
    } else if (!value.is_null()) {
      text_ = value.dump();
    }
  }
  template <class Value>
  requires std::constructible_from<Parameter, Value> Parameter(const std::optional<Value>& value) {
    if (value) *this = Parameter(*value);
  }

  // Nothing: NULL.
  const std::optional<std::string>& text() const { return text_; }

  // The bytes as PostgreSQL's bytea text, for message.payload() and the like.
  static Parameter bytes(std::string_view bytes) {
    return Parameter(std::as_bytes(std::span(bytes.data(), bytes.size())));
  }

 private:
  // Shortest text that reads back as the same number. std::to_chars rather than streams: no locale.
  template <class Number>
  static std::string number_text(Number value) {
    if constexpr (std::floating_point<Number>) {
      if (std::isnan(value)) return "NaN";
      if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    }
    char buffer[64];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
    return std::string(buffer, end);
  }

  static std::string bytea_text(std::span<const std::byte> bytes) {
    static constexpr char kHex[] = "0123456789abcdef";
    std::string text = "\\x";
    text.reserve(2 + 2 * bytes.size());
    for (const std::byte byte : bytes) {
      text += kHex[std::to_integer<unsigned>(byte) >> 4];
      text += kHex[std::to_integer<unsigned>(byte) & 15U];
    }
    return text;
  }

  std::optional<std::string> text_;
};

// What Rows, Row and Field share. hapax fills it; handlers use the classes below.
struct RowsData {
  std::vector<std::string> columns;
  std::vector<std::vector<std::optional<std::string>>> rows;
  std::size_t affected = 0;
};

// One field of a row. It keeps the rows alive from which it came.
//
// Thread safety: immutable, so any number of threads may read it.
class Field {
 public:
  // Throws: std::out_of_range if there is no such column.
  Field(std::shared_ptr<const RowsData> data, std::size_t row, std::size_t column)
      : data_(std::move(data)),
        column_(&data_->columns.at(column)),
        text_(&data_->rows[row].at(column)) {}

  bool is_null() const { return !text_->has_value(); }

  // PostgreSQL's text form. Valid as long as the Field, or anything else of the same Rows.
  // Throws: std::runtime_error if the field is NULL.
  const std::string& text() const {
    if (is_null()) throw std::runtime_error("column \"" + *column_ + "\" is NULL");
    return **text_;
  }

  // As std::string, char, bool, an integer or floating point type, nlohmann::json or ordered_json.
  // Also as an enum, from its number, and as std::optional of these: NULL gives nothing. For bytea
  // see bytes().
  // Throws: std::runtime_error if the field is NULL or its text is not such a value;
  //   nlohmann::json::parse_error if it is not JSON.
  template <class Value>
  Value as() const {
    if constexpr (is_optional<Value>::value) {
      if (is_null()) return std::nullopt;
      return as<typename Value::value_type>();
    } else if constexpr (std::same_as<Value, std::string>) {
      return text();
    } else if constexpr (std::same_as<Value, bool>) {
      if (text() != "t" && text() != "f") throw not_a("boolean");
      return text() == "t";
    } else if constexpr (std::same_as<Value, char>) {
      if (text().size() != 1) throw not_a("single char");
      return text().front();
    } else if constexpr (std::is_enum_v<Value>) {
      return static_cast<Value>(number<std::underlying_type_t<Value>>());
    } else if constexpr (std::same_as<Value, nlohmann::json> ||
                         std::same_as<Value, nlohmann::ordered_json>) {
      return Value::parse(text());
    } else {
      return number<Value>();
    }
  }

  // A bytea's bytes; nothing if the field is NULL.
  // Throws: std::runtime_error if its text is not PostgreSQL's hex form, such as '\x00ff'.
  std::optional<std::string> bytes() const {
    if (is_null()) return std::nullopt;
    if (!text().starts_with("\\x") || text().size() % 2 != 0) throw not_a("bytea in hex form");
    std::string bytes;
    bytes.reserve(text().size() / 2 - 1);
    for (const char *at = text().data() + 2, *end = text().data() + text().size(); at != end;) {
      unsigned char byte = 0;
      const auto [rest, error] = std::from_chars(at, at + 2, byte, 16);
      if (error != std::errc() || rest != at + 2) throw not_a("bytea in hex form");
      bytes += static_cast<char>(byte);
      at = rest;
    }
    return bytes;
  }

 private:
  template <class>
  struct is_optional : std::false_type {};
  template <class Value>
  struct is_optional<std::optional<Value>> : std::true_type {};

  template <class Number>
  Number number() const {
    Number value{};
    const char* const end = text().data() + text().size();
    const auto [rest, error] = std::from_chars(text().data(), end, value);
    if (error != std::errc() || rest != end) throw not_a("number of the wanted type");
    return value;
  }

  std::runtime_error not_a(const char* what) const {
    return std::runtime_error("column \"" + *column_ + "\": '" + text() + "' is not a " + what);
  }

  std::shared_ptr<const RowsData> data_;
  const std::string* column_;
  const std::optional<std::string>* text_;
};

// One row. It keeps the rows alive from which it came.
//
// Thread safety: immutable, so any number of threads may read it.
class Row {
 public:
  Row(std::shared_ptr<const RowsData> data, std::size_t index)
      : data_(std::move(data)), index_(index) {}

  // By the column's number, from 0, or by its name as PostgreSQL gives it.
  // Throws: std::out_of_range if there is no such column.
  Field operator[](std::size_t column) const { return {data_, index_, column}; }
  Field operator[](int column) const { return (*this)[static_cast<std::size_t>(column)]; }
  Field operator[](std::string_view column) const {
    for (std::size_t i = 0; i < data_->columns.size(); ++i)
      if (data_->columns[i] == column) return (*this)[i];
    throw std::out_of_range("no column \"" + std::string(column) + "\" in the result");
  }

  // One column: row.get<long>("id").
  // Throws: std::out_of_range if there is no such column; what Field::as throws.
  template <class Value, class Column>
  Value get(const Column& column) const {
    return (*this)[column].template as<Value>();
  }

  // All columns, in their order: const auto [id, name] = row.as<long, std::string>().
  // Throws: std::out_of_range if there are more or fewer columns; what Field::as throws.
  template <class... Values>
  std::tuple<Values...> as() const {
    if (data_->columns.size() != sizeof...(Values))
      throw std::out_of_range(std::to_string(data_->columns.size()) + " columns, but as<> names " +
                              std::to_string(sizeof...(Values)) + " types");
    return all<Values...>(std::index_sequence_for<Values...>());
  }

 private:
  template <class... Values, std::size_t... kColumns>
  std::tuple<Values...> all(std::index_sequence<kColumns...>) const {
    return std::tuple<Values...>{(*this)[kColumns].template as<Values>()...};
  }

  std::shared_ptr<const RowsData> data_;
  std::size_t index_;
};

// The rows of one statement, copied out of libpqxx: they outlive the transaction. Copies share the
// data.
//
// Thread safety: immutable, so any number of threads may read it.
class Rows {
 public:
  Rows() = default;
  explicit Rows(RowsData data) : data_(std::make_shared<const RowsData>(std::move(data))) {}

  std::size_t size() const { return data_->rows.size(); }
  bool empty() const { return data_->rows.empty(); }
  // How many rows an INSERT, UPDATE, DELETE or MERGE touched.
  std::size_t affected() const { return data_->affected; }

  // Throws: std::out_of_range if there is no such row.
  Row operator[](std::size_t row) const {
    if (row >= size())
      throw std::out_of_range("there is no row " + std::to_string(row) +
                              ": the statement has returned " + std::to_string(size()));
    return {data_, row};
  }

  // All rows as tuples: for (const auto& [id, name] : rows.as<long, std::string>()) ….
  // Throws: as Row::as.
  template <class... Values>
  std::vector<std::tuple<Values...>> as() const {
    std::vector<std::tuple<Values...>> tuples;
    tuples.reserve(size());
    for (const Row& row : *this) tuples.push_back(row.as<Values...>());
    return tuples;
  }

  // Random access for std::ranges. It gives rows by value, and each keeps the rows alive.
  class Iterator {
   public:
    using iterator_concept = std::random_access_iterator_tag;
    using iterator_category = std::input_iterator_tag;
    using value_type = Row;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Row;

    Iterator() = default;
    Iterator(std::shared_ptr<const RowsData> data, std::ptrdiff_t index)
        : data_(std::move(data)), index_(index) {}
    Row operator*() const { return (*this)[0]; }
    Row operator[](std::ptrdiff_t by) const {
      return {data_, static_cast<std::size_t>(index_ + by)};
    }
    Iterator& operator+=(std::ptrdiff_t by) {
      index_ += by;
      return *this;
    }
    Iterator& operator-=(std::ptrdiff_t by) { return *this += -by; }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this -= 1; }
    Iterator operator++(int) { return std::exchange(*this, *this + 1); }
    Iterator operator--(int) { return std::exchange(*this, *this - 1); }
    friend Iterator operator+(Iterator at, std::ptrdiff_t by) { return at += by; }
    friend Iterator operator+(std::ptrdiff_t by, Iterator at) { return at += by; }
    friend Iterator operator-(Iterator at, std::ptrdiff_t by) { return at -= by; }
    friend std::ptrdiff_t operator-(const Iterator& a, const Iterator& b) {
      return a.index_ - b.index_;
    }
    bool operator==(const Iterator& other) const { return index_ == other.index_; }
    std::strong_ordering operator<=>(const Iterator& other) const {
      return index_ <=> other.index_;
    }

   private:
    std::shared_ptr<const RowsData> data_;
    std::ptrdiff_t index_ = 0;
  };
  Iterator begin() const { return {data_, 0}; }
  Iterator end() const { return {data_, static_cast<std::ptrdiff_t>(size())}; }

 private:
  std::shared_ptr<const RowsData> data_ = std::make_shared<const RowsData>();
};

}  // namespace hapax
