#include "config/suggest.hpp"

#include <algorithm>
#include <vector>

namespace hapax::config {
namespace {

std::string letters(std::string_view name) {
  std::string result;
  for (const char c : name)
    if (c != '_' && c != '-' && c != '.')
      result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

// Damerau and Levenshtein's distance (optimal string alignment): three rows of the table.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> older(b.size() + 1), old(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    older.swap(old);
    old.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = old[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({old[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], older[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string closest(std::string_view name, std::span<const std::string> candidates) {
  constexpr std::size_t kLongestName = 100;  // the table grows with the product of the lengths
  if (name.size() > kLongestName) return "";
  const std::string wanted = letters(name);
  std::string best;
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const std::string known = letters(candidate);
    const std::size_t apart = distance(wanted, known);
    if (apart > known.size() / 3) continue;
    if (best.empty() || apart < best_distance) {
      best = candidate;
      best_distance = apart;
    }
  }
  return best;
}

}  // namespace hapax::config
