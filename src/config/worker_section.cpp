// The sections "postgres", "worker", "admin" and "log".
#include <unistd.h>

#include <array>
#include <charconv>
#include <limits>

#include "config/redact.hpp"
#include "config/rules.hpp"
#include "config/sections.hpp"

namespace hapax::config {
namespace {

using namespace std::chrono_literals;

// Tells a URL from a mistyped one; libpq reads the rest. Never shows what it found.
struct Url {
  static constexpr const char* kAllowed =
      "a libpq URI (postgresql://user@host/database) or key=value pairs (host=… dbname=…)";

  std::optional<std::string> operator()(Reader& reader, const Value& value) const {
    if (!value.json->is_string()) {
      reader.refuse(value, kAllowed);
      return std::nullopt;
    }
    const std::string literal = literal_part(value.json->get_ref<const std::string&>());
    if (redact_url(literal) != literal) reader.literal_secret = true;
    const auto url = reader.text(value, kAllowed);
    if (!url) return std::nullopt;
    if (const auto mistake = url_mistake(*url)) {
      reader.problem(value.path, *mistake);
      return std::nullopt;
    }
    if (const auto shown = redact_url(*url); !shown.empty() && shown != kHidden) return url;
    reader.problem(value.path, std::string("is not a connection string (its value is not shown: it "
                                           "may hold a password); allowed: ") +
                                   kAllowed);
    return std::nullopt;
  }
};

// "host:port"; "" and false are off.
struct ListenRule {
  std::optional<std::optional<Listen>> operator()(Reader& reader, const Value& value) const {
    const std::string allowed =
        "\"host:port\" (\"127.0.0.1:9464\", \"[::1]:9464\"; port 0: any free one), or false: off";
    if (value.json->is_boolean() && !value.json->get<bool>()) return std::optional<Listen>();
    const auto text = reader.text(value, allowed);
    if (!text) return std::nullopt;
    if (text->empty()) return std::optional<Listen>();
    const auto address = parse(*text);
    if (!address) {
      reader.refuse(value, allowed);
      return std::nullopt;
    }
    return address;
  }

  static std::optional<Listen> parse(const std::string& text) {
    const auto colon = text.rfind(':');
    if (colon == std::string::npos) return std::nullopt;
    Listen listen{text.substr(0, colon), 0};
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, listen.port);
    if (error != std::errc{} || rest != end) return std::nullopt;
    if (listen.host.starts_with('[') && listen.host.ends_with(']'))
      listen.host = listen.host.substr(1, listen.host.size() - 2);
    else if (listen.host.find(':') != std::string::npos)
      return std::nullopt;  // ::1:9464 could be split anywhere
    return listen.host.empty() ? std::nullopt : std::optional(listen);
  }
};

std::string host_and_process() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') return "worker";
  return std::string(host.data()) + ":" + std::to_string(getpid());
}

}  // namespace

void read_postgres(Object& section, Postgres& postgres) {
  section.require("url", postgres.url, Url{}, Url::kAllowed);
  if (const auto url = section.find("url"))
    postgres.url_file = section.reader().file_named_by(*url);
  section.read("connect_timeout", postgres.connect_timeout, Duration{2s, 5min});
  section.read("lock_timeout", postgres.lock_timeout, Duration{10ms, 10min});
  section.read("statement_timeout", postgres.statement_timeout, Duration{100ms, 24h});
  section.read("idle_in_transaction_timeout", postgres.idle_in_transaction_timeout,
               Duration{1s, 24h});
  section.read("wait_at_start", postgres.wait_at_start, Flag{});
  section.finish();
  // The other way round, a claim that waits for a lock would look like a statement that is slow.
  if (postgres.lock_timeout >= postgres.statement_timeout) {
    section.reader().problem(section.path(),
                             "lock_timeout is not shorter than statement_timeout; raise "
                             "statement_timeout or lower lock_timeout");
  }
}

void read_worker(Object& section, Worker& worker) {
  worker.name = host_and_process();
  section.read("name", worker.name, Text{"a name that is not empty", 200});
  section.read("lanes", worker.lanes, Whole{1, 256});
  section.read(
      "ordering", worker.ordering,
      Choice<Ordering>{
          {{"partition", Ordering::partition}, {"key", Ordering::key}, {"none", Ordering::none}}});
  section.section("queue", [&](Object& queue) {
    queue.read("messages", worker.queue.messages, Whole{1, 10'000'000});
    queue.read("bytes", worker.queue.bytes, Size{std::uint64_t{64} << 10, std::uint64_t{64} << 30});
    queue.finish();
  });
  section.read("durability", worker.durability,
               Choice<Durability>{{{"synchronous", Durability::synchronous},
                                   {"checkpoint", Durability::checkpoint}}});
  section.read("checkpoint_interval", worker.checkpoint_interval, Duration{50ms, 1min});
  section.read("revoke_timeout", worker.revoke_timeout, Duration{0ms, 5min});
  section.read("shutdown_timeout", worker.shutdown_timeout, Duration{0ms, 1h});
  section.read("handler_timeout", worker.handler_timeout, Duration{1s, 24h});
  section.finish();
}

void read_listen(Object& section, const std::string& name, std::optional<Listen>& listen) {
  section.read(name, listen, ListenRule{});
}

void read_admin(Object& section, Admin& admin) {
  read_listen(section, "listen", admin.listen);
  section.finish();
}

void read_log(Object& section, Log& log) {
  using observe::log::Format;
  using observe::log::Level;
  section.read("level", log.level,
               Choice<Level>{{{"debug", Level::debug},
                              {"info", Level::info},
                              {"warning", Level::warning},
                              {"error", Level::error}}});
  section.read("format", log.format,
               Choice<Format>{{{"text", Format::text}, {"json", Format::json}}});
  section.read("error_text", log.error_text, Flag{});
  section.finish();
}

}  // namespace hapax::config
