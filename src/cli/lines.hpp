// Writes a command's lines to stdout, or to a file that gets its name only when it is whole.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

namespace hapax::app {

class Lines {
 public:
  // `file` empty: stdout. Throws: Stop(kFailed) if the file exists, or cannot be made.
  explicit Lines(const std::string& file);
  // If end() was not called, removes the file that was written.
  ~Lines();
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // Throws: Stop(kFailed) with the system's reason.
  void write(const std::string& line);
  // The file is whole. Throws: as write().
  void end();

 private:
  struct Close {
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
  };
  std::string name() const { return opened_ ? part_ : "stdout"; }

  std::string file_, part_;
  std::unique_ptr<std::FILE, Close> opened_;
};

}  // namespace hapax::app
