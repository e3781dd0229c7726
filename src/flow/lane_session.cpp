#include "flow/lane_session.hpp"

#include "store/message/dead_letter.hpp"
#include "store/worker/checkpoints.hpp"

namespace hapax::flow {

// Since the partition's start, PostgreSQL lost its last commits (a crash, a failover), or the url
// now leads to a copy. The effects of messages before this one may be gone. The keeper is about to
// start the partition again from its checkpoint. If this message ran before that, it would take
// effect ahead of the lost ones.
bool LaneSession::is_behind_a_loss(std::string_view incarnation) {
  if (is_of(incarnation)) return false;
  // Asked, not remembered: a session from before the loss is dead, and only its use tells.
  store::StoreIdentity store = store::read_store(*session_);
  incarnation_ = std::move(store.incarnation);
  if (store.copied) {
    drop();  // the next connection may lead to the original
    return true;
  }
  if (*incarnation_ == incarnation) return false;
  drop();  // perhaps an old primary that still lives: the next connection tells
  return true;
}

bool LaneSession::is_of(std::string_view incarnation) const {
  return incarnation.empty() || incarnation_ == incarnation;
}

bool LaneSession::is_reachable(std::string& why) {
  try {
    if (!session_) {
      incarnation_.reset();
      session_.emplace(connect_());
      session_->serve_handlers();
      opened_ = std::chrono::steady_clock::now();
      ++number_;
    }
    // The process lives, so the announced run was no crash. If the announcement is not withdrawn
    // here, the next session does it. Otherwise every outage would count as a crash.
    if (announced_) store::withdraw_run(*session_, announced_->source, announced_->epoch);
    announced_.reset();
    return true;
  } catch (const store::DatabaseError& error) {
    drop();
    why = error.what();
    return false;
  }
}

bool LaneSession::is_reachable_and_clean(std::string& why) {
  if (session_ && !session_->is_clean()) drop();
  return is_reachable(why);
}

Action LaneSession::follow(const Decision& decision) {
  if (decision.drop_session) drop();
  std::string why;
  return decision.ask && !is_reachable(why) ? Action::end : decision.action;
}

void LaneSession::clean() {
  try {
    if (session_ && about_to_clean_) about_to_clean_(*session_);
    if (session_ && !session_->clean()) drop();
  } catch (const store::DatabaseError&) {
    drop();  // a new one is clean
  }
}

}  // namespace hapax::flow
