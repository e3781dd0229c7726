// PgBouncer between the workers and PostgreSQL, in session mode unless told otherwise: hapax
// prepares statements, and so refuses transaction mode.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "sandbox/child_process.hpp"

namespace hapax::support {

// Throws: std::exception. Thread safety: none; see ChildProcess.
class Pooler {
 public:
  // Leads to this port of 127.0.0.1, into `database`, as the worker role.
  Pooler(std::string database, std::uint16_t target, std::string mode = "session");
  ~Pooler();

  // Why there can be none on this machine; nothing if there can.
  static std::optional<std::string> missing();

  // New connections of it go there, as soon as it has read that.
  void lead_to(std::uint16_t target);

  std::uint16_t port() const { return port_; }

 private:
  void write_settings(std::uint16_t target) const;

  const std::string database_, mode_;
  const std::uint16_t port_;
  const std::filesystem::path settings_;
  std::unique_ptr<sandbox::ChildProcess> process_;
};

}  // namespace hapax::support
