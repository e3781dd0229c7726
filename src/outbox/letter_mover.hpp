// If a route names a topic for dead letters, moves its letters from their committed rows into the
// outbox. Letters from before the route had a topic move, too. It needs no lease, because the relay
// that sends may be another process, which does not know these topics.
//
// Thread safety: none; it belongs to the relay's thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "store/session.hpp"

namespace hapax::outbox {

class LetterMover {
 public:
  // `letters`: consumed topic → its dead letter topic.
  LetterMover(std::string group, std::map<std::string, std::string> letters)
      : group_(std::move(group)), letters_(std::move(letters)) {}

  // Looks again at once.
  void look_again() { move_at_ = {}; }

  // Moves letters if that is due. Returns whether it has moved some. `is_empty`: whether no letter
  // waits for a topic. Only then the topic gets more, so that a letter which an operator discards
  // meanwhile is not published. Throws: DatabaseError if the session is lost. Blocks: about half of
  // `lease`.
  bool move(store::Session& session, std::chrono::milliseconds lease, const std::string& store_id,
            const std::function<bool(const std::string&)>& is_empty);

 private:
  struct Portion {
    std::vector<std::string> consumed;
    std::size_t most = 1;
    std::size_t failures = 0;
  };
  // A topic whose last move failed. It is moved alone until all of its letters are moved.
  struct Failed {
    std::size_t most = 1;
    std::size_t failures = 0;  // alone
  };
  std::vector<Portion> portions(const std::function<bool(const std::string&)>& is_empty) const;
  bool move(store::Session& session, std::chrono::milliseconds longest, const std::string& store_id,
            const Portion& portion);
  void moved(const Portion& portion, std::size_t count);
  void failed(const Portion& portion, const char* why, const std::string& sentence);

  const std::string group_;
  const std::map<std::string, std::string> letters_;
  std::chrono::steady_clock::time_point move_at_{};
  std::map<std::string, Failed> failed_;  // by consumed topic
};

}  // namespace hapax::outbox
