// The entry of every test binary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/statvfs.h>

#include <cstdlib>

namespace {

// A database a test is three hundred files that come and go: on a disk they take longer than all
// the tests do.
void put_files_into_memory() {
#ifndef HAPAX_FILES_ON_DISK
  constexpr const char* kMemory = "/dev/shm";
  constexpr std::size_t kRoom = std::size_t{4} << 30;
  struct statvfs found {};
  if (std::getenv("TMPDIR") == nullptr && statvfs(kMemory, &found) == 0 &&
      found.f_bavail * found.f_frsize > kRoom)
    setenv("TMPDIR", kMemory, 1);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  put_files_into_memory();
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
