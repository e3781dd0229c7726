#include "support/cutting_proxy.hpp"

namespace hapax::test {

using sandbox::Proxy;

CuttingProxy::CuttingProxy(std::uint16_t target)
    : proxy_({"127.0.0.1", std::to_string(target)}, {},
             [this](int connection, Proxy::From from, const std::string& text) {
               return watch(connection, from, text);
             }) {}

void CuttingProxy::cut_next(std::string needle, Cut when) {
  const std::lock_guard lock(mutex_);
  plan_ = Plan{std::move(needle), when};
}

// A text of ours fits into one segment of the loopback, so the needle is not looked for across two.
Proxy::Then CuttingProxy::watch(int connection, Proxy::From from, const std::string& text) {
  if (from == Proxy::From::server) {
    if (!cut_at_answer_.contains(connection)) return Proxy::Then::forward;
    ++cuts_;
    return Proxy::Then::cut;
  }
  const auto planned = planned_for(text);
  if (!planned) return Proxy::Then::forward;
  if (*planned == Cut::after_answer) {
    cut_at_answer_.insert(connection);
    return Proxy::Then::forward;
  }
  ++cuts_;
  return *planned == Cut::before_forwarding ? Proxy::Then::cut : Proxy::Then::forward_and_cut;
}

std::optional<CuttingProxy::Cut> CuttingProxy::planned_for(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (!plan_ || text.find(plan_->needle) == std::string::npos) return std::nullopt;
  const Cut when = plan_->when;
  plan_.reset();
  return when;
}

}  // namespace hapax::test
