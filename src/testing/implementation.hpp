// What a Harness is inside: the route, the database, the lane of its one worker.
//
// Thread safety: as Harness.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "store/testing/test_database.hpp"
#include "testing/database.hpp"
#include "testing/lane.hpp"

namespace hapax::testing {

class Harness::Implementation {
 public:
  Implementation(HandlerFactory handler, const Options& options);

  Delivery delivery_of(const Record& record);
  Record sent_again(Record record);  // at the next offset
  // Its idempotency key at that offset; nothing if it has none.
  std::optional<std::string> key_at(const Record& record, std::int64_t offset) const;

  Outcome run(const Record& record, const std::optional<Fault>& fault, bool once);
  // Nothing: the process has died, and its lease is over. Precondition: the route calls.
  std::optional<Outcome> run(const Record& record, CallFault fault);
  bool keeps_steps() const { return lane_->caller().steps() > 0; }  // the present process
  std::vector<Outcome> run_in_parallel(const Record& record, int workers);
  // The first one's transaction stays open between its handler and its COMMIT. It goes on if the
  // second one waits for a lock or for its next run, or has ended.
  std::pair<Outcome, Outcome> run_across(const Record& first, const Record& second);
  std::optional<std::string> crash(CrashPoint point, const Record& record);
  void restart();

  void save();
  void restore();
  std::map<std::string, store::TableRows> tables() {
    return store::read_user_tables(database_.owner());
  }
  std::vector<Published> published();
  int other_sessions();

  bool calls() const { return route_.route.outside.has_value(); }
  Lane& lane() { return *lane_; }
  Database& database() { return database_; }
  const std::vector<std::string>& leaks();
  void forget_leaks();
  const TestedRoute& route() const { return route_; }
  const Options& options() const { return options_; }

 private:
  std::unique_ptr<Lane> make_lane(
      std::function<void()> wait_for_others = [] {}, std::function<void()> before_delay = [] {});
  void collect_leaks(const Lane& lane);

  const TestedRoute route_;
  const Options options_;
  Database database_;
  std::mutex time_;  // of pass_time: several lanes
  std::vector<std::pair<Record, std::int64_t>> offsets_;
  std::int64_t next_offset_ = 0;
  std::vector<std::string> leaks_;
  std::unique_ptr<Lane> lane_;
};

// What an examined message must have. With `effect`, one that has none is a problem of its first
// delivery, and the other ways are left out.
enum class Wanted { any, effect };

// What Harness::examine promises.
Report examine_record(Harness::Implementation& harness, const Record& record, Wanted wanted);

// What Harness::examine_calls promises. Precondition: the route calls.
Report examine_calls(Harness::Implementation& harness, const Record& record,
                     const OtherSide& other_side, Wanted wanted);

// What Harness::compare promises.
std::vector<std::string> compare_handlers(Harness::Implementation& one,
                                          Harness::Implementation& other,
                                          const std::vector<Record>& records);

// What Harness::expect_no_lost_update promises, as a report.
Report examine_pair(Harness::Implementation& harness, const Record& first, const Record& second);

}  // namespace hapax::testing
