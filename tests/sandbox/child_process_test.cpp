#include "sandbox/child_process.hpp"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "sandbox/temporary_folder.hpp"

namespace hapax::sandbox {
namespace {

using namespace std::chrono_literals;

// A shell with its output in a temporary file.
class Child : public testing::Test {
 protected:
  Program shell(const std::string& script) const {
    return {{"sh", "-c", script}, {}, {}, folder.path() / "output"};
  }
  std::string first_line(const Program& program) const {
    ChildProcess child(program);
    return child.read_line(30s).value_or("(nothing)");
  }

  TemporaryFolder folder{"test"};
};

TEST_F(Child, TellsHowItEnded) {
  ChildProcess three(shell("exit 3"));
  ChildProcess killed(shell("kill -9 $$"));
  EXPECT_EQ(three.wait(30s).value().text(), "exit code 3");
  EXPECT_EQ(killed.wait(30s).value().text(), "signal 9");
  EXPECT_FALSE(three.running());
}

TEST_F(Child, GivesUpWaitingAtTheDeadline) {
  ChildProcess child(shell("exec sleep 1000"));
  EXPECT_FALSE(child.wait(1ms).has_value());
  EXPECT_FALSE(child.read_line(1ms).has_value());
  EXPECT_TRUE(child.running());
}

TEST_F(Child, HandsOverLinesWhileItRuns) {
  ChildProcess child(shell("echo one; echo two >&2; printf 'thr'; echo ee; exec sleep 1000"));
  EXPECT_EQ(child.read_line(30s), "one");
  EXPECT_EQ(child.read_line(30s), "two");
  EXPECT_EQ(child.read_line(30s), "three");
  EXPECT_TRUE(child.running());
}

TEST_F(Child, StopsReadingWhenItHasEnded) {
  ChildProcess child(shell("echo last words"));
  EXPECT_FALSE(child.wait_for_line("never printed", 30s));
  ChildProcess other(shell("echo other"));
  EXPECT_EQ(other.read_line(30s), "other") << "what another child wrote before is not its own";
}

TEST_F(Child, IsKilledWithItsObject) {
  pid_t pid = 0;
  {
    ChildProcess child(shell("trap '' TERM INT HUP; echo ready; while :; do sleep 1000; done"));
    ASSERT_EQ(child.read_line(30s), "ready");
    pid = child.pid();
  }
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST_F(Child, DiesWithAParentThatIsKilled) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const ChildProcess child(shell("exec sleep 1000"));
    const pid_t pid = child.pid();
    if (write(ends[1], &pid, sizeof pid) == sizeof pid) pause();
    _exit(1);
  }
  pid_t grandchild = 0;
  ASSERT_EQ(read(ends[0], &grandchild, sizeof grandchild), ssize_t{sizeof grandchild});
  const WatchedProcess watched(grandchild);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  EXPECT_TRUE(watched.wait_for_end(30s)) << "left behind";
  close(ends[0]);
  close(ends[1]);
}

TEST_F(Child, HasNeitherOurDescriptorsNorOurBlockedSignals) {
  const Descriptor inheritable(open("/dev/null", O_RDONLY));
  sigset_t term;
  sigset_t before;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, &before);
  ChildProcess child(shell("test -e /proc/$$/fd/" + std::to_string(inheritable.get()) +
                           " && echo leaked || echo clean; exec sleep 1000"));
  sigprocmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(child.read_line(30s), "clean");
  child.signal(SIGTERM);
  ASSERT_TRUE(child.wait(30s).has_value());
  EXPECT_EQ(child.wait(0s)->signal, SIGTERM);
}

TEST_F(Child, RunsInItsFolderWithItsEnvironment) {
  Program program = shell("echo $HAPAX_TEST $PWD $(test -n \"$PATH\" && echo path)");
  program.environment = {{"HAPAX_TEST", "value"}};
  program.folder = "/usr";
  EXPECT_EQ(first_line(program), "value /usr path");
}

TEST_F(Child, RunsAsAnotherUserWithoutOurGroups) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can run a program as somebody else";
  const std::array<gid_t, 1> ours{4};
  ASSERT_EQ(setgroups(ours.size(), ours.data()), 0);
  Program program = shell("echo $(id -un) $(id -G)");
  program.user = "daemon";
  EXPECT_EQ(first_line(program), "daemon 1");
  ASSERT_EQ(setgroups(0, nullptr), 0);
}

TEST_F(Child, NamesWhatItCannotStart) {
  Program program = shell("");
  program.argv = {"no-such-program"};
  try {
    ChildProcess child(program);
    FAIL() << "started";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::no_such_file_or_directory);
    EXPECT_NE(std::string(error.what()).find("no-such-program"), std::string::npos);
  }
  program.user = "no-such-user";
  EXPECT_THROW(ChildProcess{program}, std::system_error);
}

TEST_F(Child, RunToEndQuotesWhatAFailedProgramPrinted) {
  EXPECT_NO_THROW(run_to_end(shell("true"), 30s));
  EXPECT_THROW(run_to_end(shell("exec sleep 1000"), 1ms), std::runtime_error);
  try {
    run_to_end(shell("echo the reason; exit 7"), 30s);
    FAIL() << "passed";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("exit code 7\nthe reason"), std::string::npos)
        << error.what();
  }
}

TEST(TemporaryFolder, IsRemovedAtTheEnd) {
  std::filesystem::path path;
  {
    const TemporaryFolder folder("test");
    path = folder.path();
    std::ofstream(path / "file") << "text";
    EXPECT_TRUE(std::filesystem::exists(path / "file"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryFolder, RemovesWhatAKilledProcessLeftButNothingHeld) {
  const TemporaryFolder held("test");
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t other = fork();
  if (other == 0) {
    const TemporaryFolder folder("test");
    const std::string path = folder.path();
    const ssize_t written = write(ends[1], path.data(), path.size());
    _exit(written > 0 ? 0 : 1);  // as if killed: no destructor runs
  }
  close(ends[1]);
  waitpid(other, nullptr, 0);
  std::array<char, 4096> path{};
  ASSERT_GT(read(ends[0], path.data(), path.size() - 1), 0);
  close(ends[0]);
  EXPECT_TRUE(std::filesystem::exists(path.data()));
  const TemporaryFolder next("test");
  EXPECT_FALSE(std::filesystem::exists(path.data()));
  EXPECT_TRUE(std::filesystem::exists(held.path()));
}

}  // namespace
}  // namespace hapax::sandbox
