// Where producers and streams end: each on a thread of its own. librdkafka waits for its own
// threads then, and one of these that asks for a host's name may take ten seconds. Meanwhile the
// relay's thread renews its lease, and the other topics go on.
//
// Bounded: a stream that does not get on makes a producer a second at most, and then waits.
//
// Thread safety: none; it belongs to the relay's thread.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

namespace hapax::outbox {

// Blocks: the destructor, until all that was given to it has ended.
class Endings {
 public:
  // Destroys it soon. Throws: nothing. Blocks: no, unless no thread can be started.
  template <class Thing>
  void end(std::unique_ptr<Thing> thing) {
    if (!thing) return;
    std::erase_if(running_, [](const std::future<void>& end) {
      return end.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    });
    try {
      running_.push_back(std::async(std::launch::async,
                                    [ending = std::move(thing)]() mutable { ending.reset(); }));
    } catch (const std::system_error&) {
      // There are too many threads: it has ended on this one.
    }
  }

 private:
  std::vector<std::future<void>> running_;
};

// For a unique_ptr whose object ends so. It lets go first: the thread that ends it may come late,
// and another relay may send the same records meanwhile.
struct EndsLater {
  Endings* endings;
  template <class Thing>
  void operator()(Thing* thing) const {
    thing->let_go();
    endings->end(std::unique_ptr<Thing>(thing));
  }
};

}  // namespace hapax::outbox
