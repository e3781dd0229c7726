// Ends a worker: gives its partitions back, leaves the group and ends its threads.
//
// Owned by the poll thread.
#pragma once

#include "config/config.hpp"
#include "kafka/consumer.hpp"
#include "observe/health.hpp"
#include "worker/keeper.hpp"
#include "worker/lane_setup.hpp"
#include "worker/poll_thread.hpp"
#include "worker/worker_threads.hpp"

namespace hapax::worker {

enum class Ended {
  stopped,          // by StopSignal
  gave_up_waiting,  // the same, but a handler, Kafka or PostgreSQL does not answer: destroying the
                    // Worker would wait for it, so leave the process with _Exit
  handlers_run,     // the same, and what does not answer is a handler: leave with _Exit
  handler_hangs,    // a handler ran longer than worker.handler_timeout; leave with _Exit
  fatal,            // the consumer cannot go on; the log shows the cause; leave with _Exit
};

class Shutdown {
 public:
  // All references outlive this.
  Shutdown(const config::Worker& settings, LaneSetup& lanes, PollThread& poll,
           WorkerThreads& threads, Keeper& keeper, kafka::Consumer& consumer,
           observe::Health& health)
      : settings_(settings),
        lanes_(lanes),
        poll_(poll),
        threads_(threads),
        keeper_(keeper),
        consumer_(consumer),
        health_(health) {}

  // Drains, leaves the group, ends the threads. Giving up is safe, because the next owner repeats
  // only duplicates.
  // Blocks: at most worker.shutdown_timeout, or seconds if that is less, even if Kafka, PostgreSQL
  // or a handler does not answer.
  Ended leave();

  // Blocks: until each thread has finished its work.
  void end_threads();

 private:
  bool calls_end_until(Clock::time_point until);
  bool replays_end_until(Clock::time_point until);
  bool end_threads_until(Clock::time_point until);

  const config::Worker& settings_;
  LaneSetup& lanes_;
  PollThread& poll_;
  WorkerThreads& threads_;
  Keeper& keeper_;
  kafka::Consumer& consumer_;
  observe::Health& health_;
};

}  // namespace hapax::worker
