// A folder that is removed at the end, also when "the end" was a SIGKILL.
//
// The owner of a folder holds a lock on a file in it. A process that makes a folder first removes
// those of the same kind whose lock is free, because their owners are dead.
#pragma once

#include <filesystem>
#include <string>

#include "sandbox/descriptor.hpp"

namespace hapax::sandbox {

class TemporaryFolder {
 public:
  // Makes <temporary directory>/hapax-<kind>-XXXXXX, for us only. Throws: std::system_error.
  explicit TemporaryFolder(const std::string& kind);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  Descriptor lock_;
};

}  // namespace hapax::sandbox
