#include "outbox/make_stream.hpp"

#include <algorithm>

#include "outbox/topic_stream.hpp"
#include "outbox/transacted_stream.hpp"

namespace hapax::outbox {
namespace {

constexpr std::size_t kLargestBatch = 500'000;  // bytes
constexpr std::size_t kUnknownLimit = 1'000'000;

// A topic's name has no slash, so no two pairs of group and topic share an id.
std::string transactional_id(const StreamSetup& setup) {
  return "hapax-outbox/" + setup.group + "/" + setup.topic;
}

}  // namespace

std::unique_ptr<Stream> make_stream(const StreamSetup& setup, Endings& endings, Cluster& cluster) {
  const std::size_t batch_bytes =
      std::min(kLargestBatch, setup.largest.value_or(kUnknownLimit) / 2);
  if (!setup.transactions && !setup.open) {
    const auto make = [properties = setup.properties, batch_bytes] {
      return std::make_unique<kafka::StreamProducer>(
          properties(), kafka::StreamProducer::Limits{batch_bytes, kMostRows});
    };
    return std::make_unique<TopicStream>(setup.topic, setup.group, make, endings, cluster,
                                         setup.letters_wait);
  }
  const auto make = [setup, batch_bytes](const std::stop_token& stop,
                                         std::chrono::milliseconds timeout) {
    return std::make_unique<kafka::TransactionalProducer>(
        setup.properties(), kafka::TransactionalProducer::Setup{.topic = setup.topic,
                                                                .id = transactional_id(setup),
                                                                .batch_bytes = batch_bytes,
                                                                .most_records = kMostRows,
                                                                .timeout = timeout,
                                                                .stop = stop});
  };
  return std::make_unique<TransactedStream>(
      TransactedStream::Setup{setup.topic, setup.group, make, endings, cluster, setup.letters_wait,
                              setup.open, !setup.transactions});
}

}  // namespace hapax::outbox
