// Ends producers and streams, each on a thread of its own. librdkafka waits for its own threads
// then. If one of them resolves a host's name, that may take ten seconds. Meanwhile the relay's
// thread renews its lease, and the other topics go on.
//
// Bounded, because a stream that makes no progress makes at most one producer a second, and then
// waits.
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

// Blocks: the destructor does, until all that was given to it has ended.
class Endings {
 public:
  // Destroys the object on another thread. Throws: nothing. Blocks: no, unless no thread can be
  // started.
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
      // No thread could be started, so the object has ended on this one.
    }
  }

 private:
  std::vector<std::future<void>> running_;
};

// The deleter of a unique_ptr whose object ends this way. The object first lets go of its records,
// because the thread that ends it may be late. Meanwhile another relay may send the same records.
struct EndsLater {
  Endings* endings;
  template <class Thing>
  void operator()(Thing* thing) const {
    thing->let_go();
    endings->end(std::unique_ptr<Thing>(thing));
  }
};

}  // namespace hapax::outbox
