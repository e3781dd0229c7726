#include "outside/steps.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "key/key_text.hpp"
#include "key/sha256.hpp"

namespace hapax::outside {
namespace {

[[noreturn]] void refuse_superseded() {
  throw std::runtime_error(
      "another worker has taken the key over, or an operator has decided about the call");
}

void check_name(std::string_view name) {
  if (key::encode_key(name) != name)
    throw std::invalid_argument("a step's name has 1 to " + std::to_string(key::kMaxStoredKey) +
                                " bytes of printable UTF-8, and does not begin with a colon");
}

std::string text_of(const store::KeptSteps& steps) {
  std::string text = "{";
  for (const auto& [name, answer] : steps) {
    if (text.size() > 1) text += ',';
    text += nlohmann::json(name).dump() + ':' + answer;
  }
  return text + '}';
}

}  // namespace

std::string names_of(const store::KeptSteps& steps) {
  std::string names;
  for (const auto& [name, answer] : steps) names += (names.empty() ? "" : ", ") + name;
  return names;
}

void Steps::read() {
  if (lost_) refuse_superseded();
  if (steps_) return;
  steps_ = keeper_.read(owner_);
  lost_ = !steps_;
  if (lost_) refuse_superseded();
}

std::optional<std::string> Steps::kept(std::string_view name) {
  check_name(name);
  read();
  const auto found = steps_->find(std::string(name));
  return found == steps_->end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> Steps::begin(std::string_view name) {
  if (auto answer = kept(name); answer && !begun_.contains(name)) {
    begun_.emplace(name);
    return answer;
  }
  const std::string quoted = '"' + std::string(name) + '"';
  if (!begun_.emplace(name).second)
    throw std::logic_error("the step " + quoted +
                           " was run before in this call; give each step a name of its own");
  if (!may_begin_())
    throw std::runtime_error("the step " + quoted +
                             " was not begun: this worker's lease is over, or it stops");
  return std::nullopt;
}

std::string Steps::key_of(std::string_view name) {
  check_name(name);
  std::string text = "hapax-step-1:";
  text += call_key_;
  text += ':';
  text += name;
  return key::hex(key::sha256(text));
}

void Steps::keep(std::string_view name, const std::string& answer) {
  store::KeptSteps all = *steps_;
  all.emplace(name, answer);
  const std::string text = text_of(all);
  lost_ = !keeper_.keep(owner_, text);
  if (lost_) refuse_superseded();
  steps_ = std::move(all);
}

}  // namespace hapax::outside
