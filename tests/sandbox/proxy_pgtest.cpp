// The delaying proxy, with a PostgreSQL behind it.
#include <gtest/gtest.h>

#include "sandbox/proxy.hpp"
#include "store/conninfo.hpp"
#include "store/transaction.hpp"
#include "support/database.hpp"

namespace hapax::sandbox {
namespace {

using namespace std::chrono_literals;

store::ConnectOptions through(const Proxy& proxy, store::ConnectOptions options) {
  options.url = store::url_through(options.url, store::endpoint_of(options.url), proxy.port());
  return options;
}

Proxy::Target target_of(const store::ConnectOptions& options) {
  const store::Endpoint endpoint = store::endpoint_of(options.url);
  return {endpoint.host, endpoint.port};
}

TEST(Proxy, HoldsBackBothDirectionsAndLosesNothing) {
  test::Database database;
  const Proxy proxy(target_of(database.worker()), 20ms);
  store::Session session(through(proxy, database.worker()));
  const std::string large(10 << 20, 'x');
  store::Transaction transaction(session);
  transaction.query("SELECT 1", {});
  const auto began = std::chrono::steady_clock::now();
  const Rows rows = transaction.query("SELECT $1 || 'y'", {Parameter(large)});
  EXPECT_GE(std::chrono::steady_clock::now() - began, 40ms);  // a bound that waiting cannot break
  EXPECT_EQ(rows[0][0].text(), large + 'y');
}

TEST(Proxy, WithNoServerBehindItRefuses) {
  test::Database database;
  const store::ConnectOptions options = database.worker();
  const Proxy proxy({"127.0.0.1", "1"});
  EXPECT_THROW(store::Session session(through(proxy, options)), store::DatabaseError);
}

}  // namespace
}  // namespace hapax::sandbox
