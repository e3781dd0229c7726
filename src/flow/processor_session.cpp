// The session of a lane: made where there is none, clean between messages, and of which database.
#include "flow/processor.hpp"
#include "store/checkpoints.hpp"

namespace hapax::flow {

// PostgreSQL lost its tail (a crash, a failover) since the partition's start, or the url leads to a
// copy by now: what this message follows in its order may be gone. The keeper is about to start the
// partition again, from the checkpoint; run before that, this message would take effect ahead of
// the lost ones.
bool Processor::is_behind_a_loss(const Task& task) {
  if (has_its_session(task)) return false;
  // Asked, not remembered: a session from before the loss is dead, and only its use tells.
  store::StoreIdentity store = store::read_store(*session_);
  incarnation_ = std::move(store.incarnation);
  if (store.copied) {
    session_.reset();  // the next connection may lead to the original
    return true;
  }
  if (*incarnation_ == task.incarnation) return false;
  session_.reset();  // of an old primary, perhaps, that still lives: the next one tells
  return true;
}

bool Processor::has_its_session(const Task& task) const {
  return task.incarnation.empty() || incarnation_ == task.incarnation;
}

bool Processor::reachable(std::string& why) {
  try {
    if (!session_) {
      incarnation_.reset();
      session_.emplace(connect_());
    }
    // Whatever became of the run: the process lives. Where its connection was lost, the next one
    // says so, or every outage would count as a crash.
    if (announced_) store::withdraw_run(*session_, *announced_);
    announced_.reset();
    return true;
  } catch (const store::DatabaseError& error) {
    session_.reset();
    why = error.what();
    return false;
  }
}

bool Processor::reachable_for_account(std::string& why) {
  if (session_ && !session_->is_clean()) session_.reset();
  return reachable(why);
}

// The next message finds the session as if this one had never been there.
void Processor::clean_session() {
  try {
    if (session_ && about_to_clean_) about_to_clean_(*session_);
    if (session_ && !session_->clean()) session_.reset();
  } catch (const store::DatabaseError&) {
    session_.reset();  // a new one is clean
  }
}

}  // namespace hapax::flow
