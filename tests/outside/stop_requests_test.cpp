#include "outside/stop_requests.hpp"

#include <gtest/gtest.h>

#include <future>

namespace hapax::outside {
namespace {

using namespace std::chrono_literals;

TEST(StopRequests, OfOthersPassACallbackThatBlocks) {
  std::promise<void> blocks, release;
  const std::shared_future<void> released = release.get_future().share();
  std::promise<void> asked;
  std::stop_source first, second;
  {
    const std::stop_callback blocking(first.get_token(), [&] {
      blocks.set_value();
      released.wait();
    });
    const std::stop_callback other(second.get_token(), [&] { asked.set_value(); });
    StopRequests requests;
    requests.request({first, second});
    ASSERT_EQ(blocks.get_future().wait_for(1min), std::future_status::ready);
    requests.request({});
    EXPECT_EQ(asked.get_future().wait_for(1min), std::future_status::ready);
    release.set_value();
  }
}

}  // namespace
}  // namespace hapax::outside
