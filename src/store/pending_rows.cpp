#include "store/pending_rows.hpp"

#include <algorithm>

namespace hapax::store {

PendingRows::PendingRows(std::string name, std::string text, std::span<Parameter> row,
                         std::string_view table, std::span<const std::string_view> columns)
    : name_(std::move(name)),
      text_(std::move(text)),
      table_(table),
      columns_(columns.begin(), columns.end()),
      bytes_(text_.size()) {
  for (const Parameter& value : row) bytes_ += value.text() ? value.text()->size() : 0;
  first_.assign(std::move_iterator(row.begin()), std::move_iterator(row.end()));
}

bool PendingRows::is(std::string_view table, std::span<const std::string_view> columns) const {
  return table_ == table && std::ranges::equal(columns_, columns);
}

void PendingRows::add(std::span<const Parameter> row) {
  if (arrays_.empty()) {
    arrays_.resize(width());
    append(first_);
  }
  append(row);
}

void PendingRows::append(std::span<const Parameter> row) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::size_t before = arrays_[i].size();
    row[i].text() ? arrays_[i].add(std::string_view(*row[i].text())) : arrays_[i].add_null();
    bytes_ += arrays_[i].size() - before;
  }
}

std::string PendingRows::statement() && {
  if (arrays_.empty()) return execute_text(name_, first_);
  std::vector<std::string> literals;
  for (ArrayLiteral& array : arrays_) literals.push_back(std::move(array).text());
  return execute_literals(name_ + kSet, literals);
}

std::string insert_text(std::string_view table, std::span<const std::string_view> columns) {
  const std::size_t dot = table.find('.');
  std::string text = "INSERT INTO ";
  if (dot != std::string_view::npos) text += quoted_name(table.substr(0, dot)) + '.';
  text += quoted_name(table.substr(dot == std::string_view::npos ? 0 : dot + 1));
  std::string values;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    text += (i == 0 ? " (" : ", ") + quoted_name(columns[i]);
    values += (i == 0 ? "$" : ", $") + std::to_string(i + 1);
  }
  return text + ") VALUES (" + values + ')';
}

}  // namespace hapax::store
