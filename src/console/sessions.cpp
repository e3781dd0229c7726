#include "console/sessions.hpp"

#include <algorithm>
#include <utility>

#include "cli/store_access.hpp"

namespace hapax::console {
namespace {

config::Config gentle(config::Config config, const std::string& url) {
  if (!url.empty()) {
    config.postgres.url = url;
    config.postgres.url_file.clear();
  }
  config.postgres.statement_timeout =
      std::min(config.postgres.statement_timeout, kStatementTimeout);
  config.postgres.lock_timeout = std::min(config.postgres.lock_timeout, kLockTimeout);
  config.worker.name = "console";  // in application_name
  return config;
}

}  // namespace

Sessions::Sessions(const config::Config& config, const std::string& url)
    : config_(gentle(config, url)) {}

// One of them, or none.
std::vector<store::Session> Sessions::take_idle() {
  const sync::Lock lock(mutex_);
  std::vector<store::Session> taken;
  if (idle_.empty()) return taken;
  taken.push_back(std::move(idle_.back()));
  idle_.pop_back();
  return taken;
}

void Sessions::give_back(store::Session session) {
  const sync::Lock lock(mutex_);
  idle_.push_back(std::move(session));
}

void Sessions::change(const std::function<void(store::Session&)>& use) {
  std::vector<store::Session> one = take_idle();
  if (one.empty()) one.push_back(app::open_store(config_));
  try {
    use(one.front());
  } catch (const store::DatabaseError&) {
    throw;
  } catch (const std::exception&) {
    give_back(std::move(one.front()));
    throw;
  }
  give_back(std::move(one.front()));
}

void Sessions::read(const std::function<void(store::Session&)>& use) {
  try {
    change(use);
  } catch (const store::DatabaseError& error) {
    if (error.fault().kind != store::Fault::Kind::connection) throw;
    {
      const sync::Lock lock(mutex_);
      idle_.clear();  // they are likely as dead
    }
    change(use);
  }
}

}  // namespace hapax::console
