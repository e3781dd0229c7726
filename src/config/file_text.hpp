// A small file as a whole: the configuration itself, and the secrets it points to.
#pragma once

#include <cstddef>
#include <string>
#include <variant>

namespace hapax::config {

// A configuration or a secret has no more.
inline constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;

struct NotRead {
  std::string why;  // such as "No such file or directory"
};

struct FileText {
  std::string text;
  bool open_to_others = false;  // as open_to_others() returns
};

// A file of more than kMaxFileBytes is NotRead.
// Throws: std::bad_alloc. Blocks: on the file system; a pipe, until its writer ends.
std::variant<FileText, NotRead> read_file(const std::string& path);

// The same as a value: without its last newline.
// Throws, Blocks: as read_file().
std::variant<FileText, NotRead> read_value(const std::string& path);

// Whether a file that holds a secret is open to users who should not read it. That is every user of
// this machine and, if the file is ours, its group. If the file belongs to another user, we may be
// its group, as with secrets that Kubernetes mounts. False if there is no such file, and for pipes.
// Blocks: on the file system.
bool open_to_others(const std::string& path);

// For people: that the file is open to others, and how to fix it. `what`: such as "the secret".
std::string open_to_others_warning(const std::string& what, const std::string& path);

}  // namespace hapax::config
