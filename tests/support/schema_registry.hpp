// A schema registry for tests: an HTTP server that knows the schemas that it is told.
#pragma once

#include <httplib.h>

#include <map>
#include <string>
#include <thread>

#include "sync/mutex.hpp"

namespace hapax::support {

// Thread safety: all of it.
class SchemaRegistry {
 public:
  // Throws: std::runtime_error if it cannot listen.
  SchemaRegistry();
  ~SchemaRegistry();
  SchemaRegistry(const SchemaRegistry&) = delete;
  SchemaRegistry& operator=(const SchemaRegistry&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // Answers `path` with this from now on.
  void answer(const std::string& path, int status, const std::string& body);
  // Answers everything with 503 from now on, or as before.
  void go_away();
  void come_back();
  // How often it was asked for `path`.
  int questions(const std::string& path) const;

 private:
  struct Answer {
    int status = 200;
    std::string body;
  };

  mutable sync::Mutex mutex_;
  std::map<std::string, Answer> answers_ HAPAX_GUARDED_BY(mutex_);
  bool away_ HAPAX_GUARDED_BY(mutex_) = false;
  std::map<std::string, int> questions_ HAPAX_GUARDED_BY(mutex_);
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace hapax::support
