// Two handlers, the same messages: what they do differently.
#include <algorithm>

#include "testing/contents.hpp"
#include "testing/implementation.hpp"

namespace hapax::testing {
namespace {

constexpr std::size_t kMaxCompared = 100;  // states of the tables
constexpr std::size_t kMaxTold = 20;

std::string place_of(const Record& record) {
  return "partition " + std::to_string(record.partition) +
         (record.offset ? ", offset " + std::to_string(*record.offset) : "");
}

bool same_end(const Outcome& one, const Outcome& other) {
  return one.result == other.result && one.reason == other.reason;
}

std::string text_of(const std::vector<Record>& records, std::size_t first, std::size_t last) {
  if (first == last) return "after " + place_of(records[last]);
  return "between " + place_of(records[first]) + ", and " + place_of(records[last]) +
         ", the tables become different";
}

}  // namespace

std::vector<std::string> compare_handlers(Harness::Implementation& one,
                                          Harness::Implementation& other,
                                          const std::vector<Record>& records) {
  std::vector<std::string> told;
  const auto& ignored = one.options().ignored_columns;
  const Columns without(ignored.begin(), ignored.end());
  const Tables before = one.tables();
  const auto compare_tables = [&](const std::string& when) {
    for (const std::string& difference : differences(before, one.tables(), other.tables(), without))
      told.push_back(when + ": with the other handler " + difference);
  };
  compare_tables("before the first record");
  if (!told.empty()) return told;
  const std::size_t step = (records.size() + kMaxCompared - 1) / kMaxCompared;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Outcome its = one.run(records[i], std::nullopt, false);
    const Outcome others = other.run(records[i], std::nullopt, false);
    if (!same_end(its, others))
      told.push_back(place_of(records[i]) + ": it is " + its.text() +
                     ", and with the other handler " + others.text());
    if (told.size() == kMaxTold) return told;
    if ((i + 1) % step != 0 && i + 1 != records.size()) continue;
    const std::size_t so_far = told.size();
    compare_tables(text_of(records, compared, i));
    if (told.size() > so_far) return told;
    compared = i + 1;
  }
  return told;
}

}  // namespace hapax::testing
