// What a worker tells systemd: ready, alive, stopping.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "sandbox/descriptor.hpp"
#include "sandbox/temporary_folder.hpp"
#include "support/site.hpp"

namespace hapax::support {
namespace {

using sandbox::checked;

// The socket of a service manager; processes started while it lives are told of it.
class Manager {
 public:
  Manager() {
    const std::string path = folder_.path() / "notify";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    checked(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            "bind");
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    checked(setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience),
            "setsockopt");
    setenv("NOTIFY_SOCKET", path.c_str(), 1);
    setenv("WATCHDOG_USEC", "1500000", 1);
  }
  ~Manager() {
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
  }

  // The next datagram that is not `other`. Throws: std::system_error if none comes.
  std::string next_but(const std::string& other = {}) const {
    std::string text;
    do {
      text.resize(4096);
      const auto size = recv(socket_.get(), text.data(), text.size(), 0);
      text.resize(static_cast<std::size_t>(checked(static_cast<int>(size), "recv")));
    } while (text == other);
    return text;
  }

 private:
  sandbox::TemporaryFolder folder_{"manager"};
  sandbox::Descriptor socket_{checked(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket")};
};

TEST(ServiceManager, IsToldThatAWorkerWaitsHasJoinedLivesAndStops) {
  Site site = Site::on_mock_cluster(1);  // first: a PostgreSQL that it starts tells a manager, too
  const Manager manager;
  site.database().run("ALTER SCHEMA hapax RENAME TO hidden");
  const auto worker = site.worker("w");
  EXPECT_THAT(manager.next_but(), testing::StartsWith("READY=1\nSTATUS=waiting for PostgreSQL: "));
  EXPECT_EQ(manager.next_but(), "WATCHDOG=1") << "also while it waits";
  site.database().run("ALTER SCHEMA hidden RENAME TO hapax");
  EXPECT_EQ(manager.next_but("WATCHDOG=1"), "READY=1\nSTATUS=a member of the group");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(manager.next_but(), "WATCHDOG=1");
  worker->terminate();
  EXPECT_EQ(manager.next_but("WATCHDOG=1"), "STOPPING=1\nSTATUS=draining");
  EXPECT_EQ(worker->ended().code, 0);
}

}  // namespace
}  // namespace hapax::support
