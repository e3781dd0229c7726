#include "support/schema_registry.hpp"

#include <stdexcept>

namespace hapax::support {

SchemaRegistry::SchemaRegistry() {
  answers_["/schemas/types"] = {200, R"(["JSON", "PROTOBUF", "AVRO"])"};
  server_.set_keep_alive_timeout(1);
  server_.Get(".*", [this](const httplib::Request& request, httplib::Response& response) {
    const sync::Lock lock(mutex_);
    ++questions_[request.path];
    if (away_) {
      response.status = 503;
      return;
    }
    const auto found = answers_.find(request.path);
    const Answer missing{404, R"({"error_code": 40403, "message": "Schema not found"})"};
    const Answer& answer = found == answers_.end() ? missing : found->second;
    response.status = answer.status;
    response.set_content(answer.body, "application/vnd.schemaregistry.v1+json");
  });
  port_ = server_.bind_to_any_port("127.0.0.1");
  if (port_ <= 0) throw std::runtime_error("no port for a schema registry");
  thread_ = std::thread([this] { server_.listen_after_bind(); });
  while (!server_.is_running()) std::this_thread::yield();  // before that, stop() does nothing
}

SchemaRegistry::~SchemaRegistry() {
  server_.stop();
  thread_.join();
}

void SchemaRegistry::answer(const std::string& path, int status, const std::string& body) {
  const sync::Lock lock(mutex_);
  answers_[path] = {status, body};
}

void SchemaRegistry::go_away() {
  const sync::Lock lock(mutex_);
  away_ = true;
}

void SchemaRegistry::come_back() {
  const sync::Lock lock(mutex_);
  away_ = false;
}

int SchemaRegistry::questions(const std::string& path) const {
  const sync::Lock lock(mutex_);
  const auto found = questions_.find(path);
  return found == questions_.end() ? 0 : found->second;
}

}  // namespace hapax::support
