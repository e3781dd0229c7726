// The gate's certificate, and the authority of clients' certificates (gate.tls). The files may
// change while the gate runs. New connections then use the new ones.
//
// Hides how OpenSSL is set up.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "config/gate.hpp"
#include "sync/mutex.hpp"

namespace boost::asio::ssl {
class context;
}

namespace hapax::gate {

// Thread safety: all of it.
class Tls {
 public:
  using Context = boost::asio::ssl::context;

  // Throws: std::runtime_error that names the setting and the reason.
  explicit Tls(config::GateTls files);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  // For a new connection.
  std::shared_ptr<Context> context() const;

  // When the certificate expires.
  std::chrono::sys_seconds expires() const;

  // Reads the files if they have changed. If they have a mistake, or do not belong together yet,
  // logs that once and keeps the last ones. Blocks: on the files. One thread only.
  void look();

 private:
  struct Loaded;
  static Loaded load(const config::GateTls& files);
  static std::string texts(const config::GateTls& files);
  void warn_of_expiry() const;

  const config::GateTls files_;
  std::string seen_;  // what the files held at the last look
  mutable sync::Mutex mutex_;
  std::shared_ptr<Context> context_ HAPAX_GUARDED_BY(mutex_);
  std::chrono::sys_seconds expires_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::gate
