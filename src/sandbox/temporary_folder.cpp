#include "sandbox/temporary_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cstdlib>

namespace hapax::sandbox {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockName = ".held";

void remove_abandoned(const fs::path& parent, const std::string& prefix) {
  std::error_code ignored;  // another user's, or being removed by a neighbour right now
  for (const auto& entry : fs::directory_iterator(parent, ignored)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    const fs::path lock_path = entry.path() / kLockName;
    // Does not wait if another user has put a FIFO there.
    const Descriptor lock(open(lock_path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (lock.get() < 0 || flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
    fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder(const std::string& kind) {
  const fs::path parent = fs::temp_directory_path();
  const std::string prefix = "hapax-" + kind + '-';
  remove_abandoned(parent, prefix);
  std::string name = parent / (prefix + "XXXXXX");
  if (mkdtemp(name.data()) == nullptr) checked(-1, "cannot make " + name);
  path_ = name;
  // Locked before it has its name, so that no process finds it unlocked.
  const fs::path unnamed = path_ / ".new";
  lock_ = Descriptor(checked(open(unnamed.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600), name));
  checked(flock(lock_.get(), LOCK_EX), name);
  fs::rename(unnamed, path_ / kLockName);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // what is left is found by the next one of this kind
  fs::remove_all(path_, ignored);
}

}  // namespace hapax::sandbox
