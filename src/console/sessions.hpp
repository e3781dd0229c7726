// Sessions with PostgreSQL that the threads of the console borrow. Their statements have a short
// timeout, so that a look cannot hold up the database of the workers.
//
// Thread safety: everything may be called from any thread.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "config/config.hpp"
#include "store/session.hpp"
#include "sync/mutex.hpp"

namespace hapax::console {

inline constexpr std::chrono::milliseconds kStatementTimeout{5000};
inline constexpr std::chrono::milliseconds kLockTimeout{2000};

class Sessions {
 public:
  // `url`: another role than the configuration's; empty: that one.
  Sessions(const config::Config& config, const std::string& url);

  // Runs `use` with a session that no other thread uses meanwhile. There are as many sessions as
  // threads that call. A session is thrown away after a DatabaseError.
  // Throws: app::Stop and store::DatabaseError if there is none to be had, and what `use` throws.
  // Blocks: at most connect_timeout, and what `use` does.
  void change(const std::function<void(store::Session&)>& use);

  // The same for what changes nothing: runs again, once, if the session proves lost.
  void read(const std::function<void(store::Session&)>& use);

  // With the timeouts of the sessions.
  const config::Config& config() const { return config_; }

 private:
  std::vector<store::Session> take_idle();
  void give_back(store::Session session);

  config::Config config_;
  sync::Mutex mutex_;
  std::vector<store::Session> idle_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::console
