// Rows of one plain INSERT that wait for more rows. One row goes out as that INSERT, several as one
// statement over arrays.
//
// Thread safety: none; they belong to a Transaction.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hapax/rows.hpp"
#include "store/quote.hpp"

namespace hapax::store {

class PendingRows {
 public:
  // `text`: INSERT INTO … VALUES ($1, …), prepared as `name`; `row`: its values, which are taken.
  // `table`, `columns`: of Context::insert; empty if a handler wrote the text itself.
  PendingRows(std::string name, std::string text, std::span<Parameter> row,
              std::string_view table = {}, std::span<const std::string_view> columns = {});

  const std::string& text() const { return text_; }
  bool is(std::string_view table, std::span<const std::string_view> columns) const;

  bool alone() const { return arrays_.empty(); }
  std::size_t width() const { return first_.size(); }
  std::size_t bytes() const { return bytes_; }

  // Adds one more row. Precondition: the row is as wide as the first one, and `name` + kSet is
  // prepared.
  void add(std::span<const Parameter> row);

  // Returns the EXECUTE of all rows. Nothing may be added afterwards.
  std::string statement() &&;

  // The name of the statement over arrays is `name` + kSet.
  static constexpr const char* kSet = "_set";

 private:
  void append(std::span<const Parameter> row);

  std::string name_;
  std::string text_;
  std::string table_;
  std::vector<std::string> columns_;
  std::vector<Parameter> first_;
  std::vector<ArrayLiteral> arrays_;  // empty while there is one row
  std::size_t bytes_ = 0;
};

// "INSERT INTO "schema"."table" ("a", "b") VALUES ($1, $2)".
std::string insert_text(std::string_view table, std::span<const std::string_view> columns);

}  // namespace hapax::store
