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

bool is_open_to_others(const struct stat& status) {
  const mode_t others = status.st_uid == geteuid() ? S_IRWXG | S_IRWXO : S_IRWXO;
  return S_ISREG(status.st_mode) && (status.st_mode & others) != 0;
}

// Closes the descriptor in any case.
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
  result.open_to_others = is_open_to_others(status);
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

std::variant<FileText, NotRead> read_value(const std::string& path) {
  auto file = read_file(path);
  if (auto* value = std::get_if<FileText>(&file)) {
    std::string& text = value->text;
    if (text.ends_with('\n')) text.resize(text.size() - (text.ends_with("\r\n") ? 2 : 1));
  }
  return file;
}

bool open_to_others(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && is_open_to_others(status);
}

std::string open_to_others_warning(const std::string& what, const std::string& path) {
  return what + " " + path + " is open to other users of this machine; `chmod go-rwx " + path +
         "` would close it";
}

}  // namespace hapax::config
