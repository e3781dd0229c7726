#include "config/file_text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace hapax::config {
namespace {

NotRead last_error() { return {std::generic_category().message(errno)}; }

// Closes the descriptor whatever happens.
struct File {
  int descriptor;
  explicit File(const std::string& path) : descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~File() {
    if (descriptor >= 0) close(descriptor);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
};

}  // namespace

std::variant<FileText, NotRead> read_file(const std::string& path) {
  const File file(path);
  struct stat status {};
  if (file.descriptor < 0 || fstat(file.descriptor, &status) != 0) return last_error();

  FileText result;
  result.readable_by_all = S_ISREG(status.st_mode) && (status.st_mode & S_IROTH) != 0;
  std::array<char, 16'384> block;
  while (true) {
    const ssize_t count = read(file.descriptor, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return last_error();
    if (count == 0) return result;
    result.text.append(block.data(), static_cast<std::size_t>(count));
    if (result.text.size() > kMaxFileBytes)
      return NotRead{"it has more than " + std::to_string(kMaxFileBytes) + " bytes"};
  }
}

}  // namespace hapax::config
