// The PostgreSQL session of a lane: whether it is there, clean, and of which server.
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

  // Of the open session, or the last one that was: they are counted from 1.
  int number() const { return number_; }

  // Since it was opened. Precondition: is_open().
  std::chrono::steady_clock::duration age() const {
    return std::chrono::steady_clock::now() - opened_;
  }

  // Precondition: is_open().
  store::Session& operator*() { return *session_; }
  store::Session* operator->() { return &*session_; }

  // True if PostgreSQL answers. Connects if no session is open, and withdraws an announced run.
  // `why` tells why not. Blocks: at most the connect timeout.
  bool is_reachable(std::string& why);

  // The same, on a session in which no handler has left anything or dropped hapax's statements.
  bool is_reachable_and_clean(std::string& why);

  // Drops the session and asks PostgreSQL, as decided. What remains to be done: nothing but to end
  // if PostgreSQL was asked and does not answer. Blocks: at most the connect timeout.
  Action follow(const Decision& decision);

  // Closes it, because it is lost or spoilt; is_reachable() makes another.
  void drop() { session_.reset(); }

  // The next message finds the session as if this one had never been there. Throws: nothing.
  void clean();

  // Whether it is of this incarnation of PostgreSQL, as far as is known. Empty: any will do.
  bool is_of(std::string_view incarnation) const;

  // Whether PostgreSQL may have lost what a partition's messages follow, since that partition
  // started in `incarnation`. Drops the session if so. Throws: DatabaseError.
  // Precondition: is_open().
  bool is_behind_a_loss(std::string_view incarnation);

  // A cautious run that hapax.attempts announces. is_reachable() withdraws it: the process lives.
  void set_announced(store::Source source, std::int64_t epoch) {
    announced_ = Announced{std::move(source), epoch};
  }
  // Its epoch if the withdrawal is still due; it is the caller's to remember from now on.
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
