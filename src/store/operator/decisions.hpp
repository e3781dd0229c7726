// How a halt may be ended: which decisions fit which reason, and what each one does.
//
// A halt means that the facts do not add up; the decision is the fact that only a person knows.
// One that does not fit would end the halt and let the partition halt again, or lose messages.
//
// Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hapax::store {

struct Decision {
  std::string_view name;
  std::span<const std::string_view> reasons;  // empty: any
  bool destructive;                           // asks first: messages may be lost or run twice
  std::string_view effect;                    // "…, so …", for people

  bool fits(std::string_view reason) const;
  // What it is to a halt of this reason: whether it asks first, and its effect.
  Decision about(std::string_view reason) const;
};

std::span<const Decision> all_decisions();

// Null if there is no such decision.
const Decision* decision_named(std::string_view name);

// Those that fit, the likeliest first. `retry` comes last if the facts contradict each other: the
// partition then halts again unless they have changed. `names_message`: the halt does; else
// there is none to run or to skip.
std::vector<Decision> decisions_about(std::string_view reason, bool names_message);

// Their names: "retry, skip".
std::string decisions_for(std::string_view reason, bool names_message);

// Whether it decides which database counts: `moved` and `copy`.
bool is_about_database(const Decision& decision);

// Whether it is about the message that the halt names.
bool needs_message(const Decision& decision);

}  // namespace hapax::store
