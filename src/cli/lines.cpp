#include "cli/lines.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/command.hpp"

namespace hapax::app {
namespace {

[[noreturn]] void fail(const std::string& name) {
  throw Stop(kFailed, "cannot write " + name + ": " + std::strerror(errno));
}

}  // namespace

Lines::Lines(const std::string& file) : file_(file), part_(file + ".part") {
  if (file_.empty()) return;
  if (std::filesystem::exists(file_)) throw Stop(kFailed, file_ + " is there already");
  // It holds whole messages, so it is for its owner only, under any umask.
  const int made = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made < 0) fail(part_);
  opened_.reset(::fdopen(made, "w"));
  if (opened_) return;
  ::close(made);
  fail(part_);
}

Lines::~Lines() {
  if (opened_ && std::remove(part_.c_str()) != 0) std::perror(part_.c_str());
}

void Lines::write(const std::string& line) {
  std::FILE* const out = opened_ ? opened_.get() : stdout;
  if (std::fwrite(line.data(), 1, line.size(), out) != line.size() || std::fputc('\n', out) == EOF)
    fail(name());
}

void Lines::end() {
  if (std::fflush(opened_ ? opened_.get() : stdout) != 0) fail(name());
  if (!opened_) return;
  if (std::fclose(opened_.release()) != 0 || std::rename(part_.c_str(), file_.c_str()) != 0)
    fail(part_);
}

}  // namespace hapax::app
