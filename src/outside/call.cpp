#include "outside/call.hpp"

#include "key/sha256.hpp"
#include "store/fault.hpp"

namespace hapax::outside {
namespace {

void append_field(std::string& text, std::string_view field) {
  text += std::to_string(field.size());
  text += ':';
  text += field;
}

std::string text_of(const std::exception_ptr& error) { return store::fault_of(error).text; }

Ended call_now(OutsideHandler& handler, const Message& message, const Call& call) {
  using How = Ended::How;
  try {
    return {How::answered, handler.call_for_text(message, call)};
  } catch (const NotCalled&) {
    return {How::not_called, text_of(std::current_exception())};
  } catch (const BadPayload&) {
    return {How::no_call, text_of(std::current_exception())};
  } catch (const Reject&) {
    return {How::refused, text_of(std::current_exception())};
  } catch (const Retry& retry) {
    return {How::failed, text_of(std::current_exception()), retry.after()};
  } catch (...) {
    return {How::failed, text_of(std::current_exception())};
  }
}

}  // namespace

std::string key_to_hand_on(const std::string& scope, const key::Identity& identity) {
  std::string text;
  append_field(text, "hapax-call-1");
  append_field(text, scope);
  append_field(text, identity.tenant);
  append_field(text, identity.key);
  return key::hex(key::sha256(text));
}

Ended make_call(OutsideHandler& handler, const Message& message, const Call& call, Step step,
                const std::function<bool()>& may_call) {
  using How = Ended::How;
  if (step == Step::reconcile) {
    try {
      const Verdict verdict = handler.reconcile(message, call);
      if (verdict.kind() == Verdict::Kind::done) return {How::answered, verdict.answer_text()};
      if (verdict.kind() == Verdict::Kind::unknown)
        return {How::unknown, "reconcile: the other side cannot tell yet"};
    } catch (...) {
      return {How::unknown, "reconcile: " + text_of(std::current_exception())};
    }
  }
  if (!may_call()) return {How::not_begun};
  Ended ended = call_now(handler, message, call);
  ended.none_before = step == Step::reconcile;
  return ended;
}

Ended not_kept(const std::string& why) {
  return {Ended::How::failed, "it was answered, and PostgreSQL cannot keep the answer: " + why};
}

}  // namespace hapax::outside
