// The PostgreSQL session of a lane. It knows whether it is open and clean, and to which server it
// leads.
//
// Thread safety: none; each lane has its own.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "flow/failure_policy.hpp"
#include "store/message/source.hpp"
#include "store/session.hpp"

namespace hapax::flow {

class LaneSession {
 public:
  using Connect = std::function<store::Session()>;
  using AboutToClean = std::function<void(store::Session&)>;

  // `about_to_clean`: called with the session as a run left it, for the test kit; may be empty.
  explicit LaneSession(Connect connect, AboutToClean about_to_clean = {})
      : connect_(std::move(connect)), about_to_clean_(std::move(about_to_clean)) {}

  bool is_open() const { return session_.has_value(); }

  // The number of the open session, or of the last one, counted from 1.
  int number() const { return number_; }

  // The time since it was opened. Precondition: is_open().
  std::chrono::steady_clock::duration age() const {
    return std::chrono::steady_clock::now() - opened_;
  }

  // Precondition: is_open().
  store::Session& operator*() { return *session_; }
  store::Session* operator->() { return &*session_; }

  // True if PostgreSQL answers. Connects if no session is open, and withdraws an announced run.
  // If not, `why` tells the reason. Blocks: at most the connect timeout.
  bool is_reachable(std::string& why);

  // The same, with a session in which no handler has left anything, or dropped hapax's statements.
  bool is_reachable_and_clean(std::string& why);

  // Drops the session and asks PostgreSQL, as decided. Returns the action that remains. If
  // PostgreSQL was asked and does not answer, that is Action::end. Blocks: at most the connect
  // timeout.
  Action follow(const Decision& decision);

  // Closes the session, because it is lost or unusable. is_reachable() makes another.
  void drop() { session_.reset(); }

  // Undoes what this message left in the session, before the next message. Throws: nothing.
  void clean();

  // Whether the session is of this incarnation of PostgreSQL, as far as is known. Empty: any is
  // fine.
  bool is_of(std::string_view incarnation) const;

  // Whether PostgreSQL may have lost effects of earlier messages, since the partition started in
  // `incarnation`. If so, drops the session. Throws: DatabaseError.
  // Precondition: is_open().
  bool is_behind_a_loss(std::string_view incarnation);

  // A cautious run that hapax.attempts announces. is_reachable() withdraws it: the process lives.
  void set_announced(store::Source source, std::int64_t epoch) {
    announced_ = Announced{std::move(source), epoch};
  }
  // Returns its epoch if the withdrawal is still due. From then on the caller must remember it.
  std::optional<std::int64_t> take_announced() {
    const auto due = std::exchange(announced_, std::nullopt);
    return due ? std::optional(due->epoch) : std::nullopt;
  }

 private:
  struct Announced {
    store::Source source;
    std::int64_t epoch;
  };

  Connect connect_;
  AboutToClean about_to_clean_;
  std::optional<store::Session> session_;
  int number_ = 0;
  std::chrono::steady_clock::time_point opened_;
  std::optional<std::string> incarnation_;  // that session_ found; nothing: not asked yet
  std::optional<Announced> announced_;
};

}  // namespace hapax::flow
