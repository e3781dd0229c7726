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
  bool readable_by_all = false;  // every user of this machine may read it
};

// A file of more than kMaxFileBytes is NotRead.
// Throws: std::bad_alloc. Blocks: on the file system; a pipe, until its writer ends.
std::variant<FileText, NotRead> read_file(const std::string& path);

}  // namespace hapax::config
