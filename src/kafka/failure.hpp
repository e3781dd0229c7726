// What librdkafka's error codes mean: one table each for offset commits and for the consumer.
#pragma once

#include <librdkafka/rdkafka.h>

namespace hapax::kafka {

enum class CommitMeaning {
  done,
  dropped,  // the group has moved on: the partition's new owner commits
  later,    // the coordinator is away: keep the watermark, try again
  fatal,    // the consumer cannot go on
};

CommitMeaning meaning_of_commit(rd_kafka_resp_err_t error);

enum class ConsumerMeaning {
  information,   // librdkafka goes on by itself; worth a line in the log
  out_of_range,  // the offset is no longer (or not yet) in the log
  unreadable,    // something stands at that offset that the client cannot read: pin and halt
  gone,          // the topic or partition is not there; another may come under its name
  refused,       // it is there, and not ours to read
  fatal,
};

ConsumerMeaning meaning_of_consumer_error(rd_kafka_resp_err_t error);

}  // namespace hapax::kafka
