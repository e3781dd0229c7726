#include "outbox/transaction.hpp"

#include "flow/crash_point.hpp"
#include "outbox/record.hpp"

namespace hapax::outbox {
namespace {

// Whether a text is a token. If a tool has moved a group's offsets, it leaves none, or another
// text.
bool is_token(const std::string& text) {
  return text.size() == 36 && text.find_first_not_of("0123456789abcdef-") == std::string::npos;
}

// What is wrong with the topic. If a topic is gone, Kafka forgets its committed offsets, too.
std::string topic_error(kafka::TransactionalProducer& producer) {
  try {
    producer.look();
    return {};
  } catch (const kafka::TransactionError& error) {
    return error.what();
  }
}

}  // namespace

Verdict judge(const std::optional<store::OpenBatch>& open,
              const std::optional<kafka::Marker>& held) {
  if (!open || open->is_halted()) return Verdict::none_open;
  if (!held || held->token.empty()) return Verdict::marker_lost;
  if (held->token == open->token) return Verdict::sent;
  if (held->token == open->follows) return Verdict::unsent;
  return held->number > open->number ? Verdict::tail_lost : Verdict::marker_lost;
}

// A batch may have left records that Kafka has neither committed nor aborted, though init() has
// returned (KAFKA-20734). The end of the next transaction would decide about them, too. So a sent
// batch might be lost with it, and an unsent one might come twice.
//
// The marker is committed again in any case: Kafka forgets offsets of a group without members after
// a week. If there is no marker, this commits one, which the first batch follows. An open batch
// would be judged by it, so there must be none.
Judged take_over_batch(kafka::TransactionalProducer& producer,
                       const std::optional<store::OpenBatch>& open, const std::string& fresh_token,
                       const kafka::Delayed& delayed) {
  producer.init();
  flow::crash_point("outbox_kafka_fenced");
  const auto held = producer.marker();
  const Verdict verdict = judge(open, held);
  if (verdict == Verdict::marker_lost) return {verdict, {}, topic_error(producer)};
  producer.look();
  if (open) producer.await_all_visible(delayed);
  Judged judged{verdict, held.value_or(kafka::Marker{0, fresh_token})};
  if (!is_token(judged.held.token)) judged.held.token = fresh_token;
  producer.begin();
  producer.mark(judged.held);
  producer.commit();
  flow::crash_point("outbox_marker_renewed");
  return judged;
}

std::optional<kafka::TransactionalProducer::Refusal> send_batch(
    kafka::TransactionalProducer& producer, const Batch& batch, const kafka::Delayed& delayed) {
  producer.begin();
  for (const auto& [row, partition] : batch.rows)
    producer.send(record_of(row, batch.group), partition, row.id);
  flow::crash_point("outbox_batch_offered");
  if (auto refusal = producer.await_answers()) return refusal;
  flow::crash_point("outbox_batch_produced");
  producer.mark(batch.marker);
  flow::crash_point("outbox_batch_marked");
  producer.commit();
  flow::crash_point("outbox_batch_committed");
  producer.await_visible(delayed);
  producer.look();
  return std::nullopt;
}

}  // namespace hapax::outbox
