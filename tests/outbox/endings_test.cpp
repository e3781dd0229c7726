// What the relay lets go of before another thread ends it.
#include "outbox/endings.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace hapax::outbox {
namespace {

struct Held {
  void let_go() { *let_go_by = std::this_thread::get_id(); }
  std::thread::id* let_go_by;
};

// That thread may come late, and librdkafka would send on meanwhile.
TEST(Endings, TheRelaysOwnThreadLetsGoOfWhatAnotherThreadEnds) {
  Endings endings;
  std::thread::id let_go_by;
  std::unique_ptr<Held, EndsLater> held(new Held{&let_go_by}, {&endings});
  held.reset();
  EXPECT_EQ(let_go_by, std::this_thread::get_id());
}

}  // namespace
}  // namespace hapax::outbox
