#include "store/worker/wal_position.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "sql_statements.hpp"

namespace hapax::store {
namespace {

template <class Number>
bool take(std::string_view text, int base, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string WalPosition::text() const {
  char text[40];
  std::snprintf(text, sizeof text, "%u/%X/%X", timeline, static_cast<std::uint32_t>(lsn >> 32U),
                static_cast<std::uint32_t>(lsn));
  return database.empty() ? text : database + "/" + text;
}

std::optional<WalPosition> WalPosition::parse(std::string_view text) {
  WalPosition position;
  if (std::ranges::count(text, '/') == 3) {
    const std::size_t end = text.find('/');
    if (end == 0) return std::nullopt;
    position.database = text.substr(0, end);
    text.remove_prefix(end + 1);
  }
  const std::size_t first = text.find('/');
  const std::size_t second = text.find('/', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return std::nullopt;
  std::uint32_t high = 0;
  std::uint32_t low = 0;
  if (!take(text.substr(0, first), 10, position.timeline) ||
      !take(text.substr(first + 1, second - first - 1), 16, high) ||
      !take(text.substr(second + 1), 16, low))
    return std::nullopt;
  position.lsn = (std::uint64_t{high} << 32U) | low;
  return position;
}

WalPosition WalPosition::at(std::string_view place) const {
  WalPosition position = *this;
  if (const auto parsed = parse("0/" + std::string(place)))
    position.lsn = std::min(lsn, parsed->lsn);
  return position;
}

std::optional<WalPosition> read_wal_position(Transaction& transaction) {
  const Rows rows = transaction.run(sql::kReadWalPosition, {});
  return rows.empty() ? std::nullopt : WalPosition::parse(rows[0][0].text());
}

std::optional<WalPosition> read_wal_position(Session& session) {
  Transaction none(session);
  const Rows rows = none.run_outside(session.execute(sql::kReadWalPosition, {}));
  return rows.empty() ? std::nullopt : WalPosition::parse(rows[0][0].text());
}

}  // namespace hapax::store
