#include "outside/steps.hpp"

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

std::string payload_of(const key::Fingerprint& fingerprint) {
  return fingerprint.rule + ' ' + key::hex(fingerprint.digest);
}

}  // namespace

void heed_doubt(const Steps& steps, Ended& ended) {
  using How = Ended::How;
  if (steps.is_in_doubt() && (ended.how == How::not_called || ended.how == How::no_call))
    ended.how = How::failed;
}

bool are_of_another_payload(const store::KeptSteps& steps, const key::Fingerprint& own) {
  return steps.payload.starts_with(own.rule + ' ') && steps.payload != payload_of(own);
}

bool may_be_of_another_payload(const store::KeptSteps& steps, const key::Fingerprint& own) {
  return !steps.answers.empty() && steps.payload != payload_of(own);
}

std::string names_of(const store::KeptSteps& steps) {
  std::string names;
  for (const auto& [name, answer] : steps.answers) names += (names.empty() ? "" : ", ") + name;
  return names;
}

// If nothing is in doubt, the call may end as one that was not made.
void Steps::refuse(const std::string& why) const {
  if (is_in_doubt()) throw std::runtime_error(why);
  throw NotCalled(why);
}

void Steps::read() {
  if (lost_) refuse_superseded();
  if (steps_) return;
  std::optional<store::KeptSteps> found;
  try {
    found = keeper_.read(owner_);
  } catch (const std::exception& error) {
    refuse(error.what());
  }
  lost_ = !found;
  if (lost_) refuse_superseded();
  if (!found->can_be_kept)
    refuse("the database is of a schema that keeps no steps: run `hapax migrate up`");
  if (are_of_another_payload(*found, owner_.identity.fingerprint))
    refuse("the steps that are done (" + names_of(*found) + ") are of another payload");
  steps_ = std::move(found);
}

std::optional<std::string> Steps::kept(std::string_view name) {
  check_name(name);
  read();
  const auto found = steps_->answers.find(std::string(name));
  return found == steps_->answers.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> Steps::begin(std::string_view name) {
  auto answer = kept(name);
  const std::string quoted = '"' + std::string(name) + '"';
  if (!begun_.emplace(name).second)
    throw std::logic_error("the step " + quoted +
                           " was run before in this call; give each step a name of its own");
  if (answer) return answer;
  if (!may_begin_())
    refuse("the step " + quoted + " was not begun: this worker's lease is over, or it stops");
  in_doubt_.emplace(name);
  return std::nullopt;
}

void Steps::not_done(std::string_view name) { in_doubt_.erase(std::string(name)); }

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
  all.answers.emplace(name, answer);
  all.payload = payload_of(owner_.identity.fingerprint);
  lost_ = !keeper_.keep(owner_, all, *steps_);
  if (lost_) refuse_superseded();
  in_doubt_.erase(std::string(name));
  steps_ = std::move(all);
}

}  // namespace hapax::outside
