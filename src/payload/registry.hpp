// Asks a schema registry for schemas, and decides what follows if it does not answer or does not
// know one.
//
// If the registry is away, messages wait as in an outage of PostgreSQL: no attempt is counted.
// hapax asks again after a wait that grows to kMaxWait, and not before.
// If it answers, but has trouble with one schema, only messages of that schema wait, because a
// message may hold any id. If a question fails, kProbe tells which of the two it is.
// If it does not know a schema, its messages wait for `unknown_timeout` from the first question on.
// A producer may be quicker than the registry's replica. Then they are refused, and hapax asks
// again only every kAskAgain. If the registry has no GUIDs, it knows no schema by GUID.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <variant>

#include "payload/decoder.hpp"
#include "payload/http.hpp"
#include "sync/mutex.hpp"

namespace hapax::payload {

class Registry {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::milliseconds kFirstWait{100};
  static constexpr std::chrono::milliseconds kMaxWait{2'000};
  // For a schema with which the registry has trouble. Such a question may cost a lane seconds.
  static constexpr std::chrono::milliseconds kMaxTroubleWait{30'000};
  // Every registry answers this path, even an empty one.
  static constexpr const char* kProbe = "/schemas/types";
  static constexpr std::chrono::milliseconds kAskAgain{5'000};
  // Unknown schemas that are remembered. One more waits until the time of another one is over. As
  // many with trouble.
  static constexpr std::size_t kMaxUnknown = 10'000;

  struct NotNow {
    std::string why;
    std::chrono::milliseconds wait{0};
  };
  struct Unknown {
    std::string why;
  };
  using Found = std::variant<SchemaText, NotNow, Unknown>;

  // `name`: for the log. `now`: the time, for tests.
  Registry(std::string name, HttpGet get, std::chrono::milliseconds unknown_timeout,
           std::function<Clock::time_point()> now = Clock::now)
      : name_(std::move(name)),
        get_(std::move(get)),
        unknown_timeout_(unknown_timeout),
        now_(std::move(now)) {}

  // `path`: of the schema, as in Framed. One thread asks at a time. The others wait for its answer.
  // Throws: NotDecodable, if the schema refers to too much; std::bad_alloc.
  // Blocks: at most 11 s, and as long for each thread that asks before.
  // Thread safety: safe.
  Found find(const std::string& path);

  // False if the registry was away at the last question. Does not block. Thread safety: safe.
  bool is_up() const { return up_; }

 private:
  struct Asked {
    Clock::time_point first;
    Clock::time_point last;
  };
  struct Trouble {
    std::string why;
    std::chrono::milliseconds wait{0};
    Clock::time_point not_before{};
  };
  struct Away {
    std::string why;
    bool has_no_such_path = false;  // it answers to other paths
  };
  struct Missing {};
  class Walk;
  using Document = std::variant<nlohmann::json, Missing, Away>;

  Found ask(const std::string& path) HAPAX_REQUIRES(mutex_);
  Document answer(const std::string& path) const;
  Document document(const std::string& path) const;
  std::variant<SchemaText, Missing, Away> schema(const std::string& path) const;
  bool answers() const;
  NotNow has_trouble(const std::string& path, const std::string& why) HAPAX_REQUIRES(mutex_);
  NotNow went_away(const std::string& why) HAPAX_REQUIRES(mutex_);
  void came_back() HAPAX_REQUIRES(mutex_);
  Found unknown(const std::string& path) HAPAX_REQUIRES(mutex_);

  const std::string name_;
  const HttpGet get_;
  const std::chrono::milliseconds unknown_timeout_;
  const std::function<Clock::time_point()> now_;
  sync::Mutex mutex_;
  std::map<std::string, Asked> unknown_ HAPAX_GUARDED_BY(mutex_);
  std::map<std::string, Trouble> troubles_ HAPAX_GUARDED_BY(mutex_);
  std::atomic<bool> up_{true};
  std::chrono::milliseconds wait_ HAPAX_GUARDED_BY(mutex_){0};  // 0: it is not away
  Clock::time_point ask_not_before_ HAPAX_GUARDED_BY(mutex_){};
  Clock::time_point tell_not_before_ HAPAX_GUARDED_BY(mutex_){};
  Clock::time_point tell_trouble_not_before_ HAPAX_GUARDED_BY(mutex_){};
  std::string why_away_ HAPAX_GUARDED_BY(mutex_);
};

}  // namespace hapax::payload
