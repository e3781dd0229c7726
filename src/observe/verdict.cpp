#include "observe/verdict.hpp"

#include "observe/escape.hpp"

namespace hapax::observe {
namespace {

using Json = nlohmann::ordered_json;

double decimal_seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string whole_seconds(std::chrono::nanoseconds time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

// The partition's trouble, or nothing when it is ready.
std::optional<std::string> trouble(const PartitionFacts& facts, TimePoint now,
                                   const HealthBounds& bounds) {
  const PartitionReport& report = facts.report;
  if (report.state == PartitionState::halted)
    return "halted: " + (report.reason.empty() ? "reason unknown" : to_valid_utf8(report.reason));
  const std::string why = report.reason.empty() ? "" : ": " + to_valid_utf8(report.reason);
  if (report.state == PartitionState::starting) return "starting" + why;
  if (report.state == PartitionState::refused) return "refused" + why;
  const auto still = now - facts.last_advance;
  if (still <= bounds.stall) return std::nullopt;
  if (report.in_flight > 0)
    return "stalled: " + std::to_string(report.running) + " running, " +
           std::to_string(report.in_flight - report.running) +
           " waiting, and the watermark has not moved for " + whole_seconds(still) + why;
  if (report.lag.value_or(0) > 0)
    return "stalled: " + std::to_string(*report.lag) +
           " behind and the watermark has not moved for " + whole_seconds(still);
  if (!report.lag && report.state != PartitionState::idle)
    return "lag unknown and the watermark has not moved for " + whole_seconds(still);
  return std::nullopt;
}

Json partition_detail(const HealthBoard::Key& key, const PartitionFacts& facts, TimePoint now) {
  const PartitionReport& report = facts.report;
  Json detail{{"topic", to_valid_utf8(key.first)},
              {"partition", key.second},
              {"state", name(report.state)},
              {"watermark", nullptr},
              {"lag", nullptr},
              {"in_flight", report.in_flight},
              {"running", report.running},
              {"seconds_since_advance", decimal_seconds(now - facts.last_advance)}};
  if (report.watermark) detail["watermark"] = *report.watermark;
  if (report.lag) detail["lag"] = *report.lag;
  if (!report.reason.empty()) detail["reason"] = to_valid_utf8(report.reason);
  return detail;
}

void judge_poll_loop(Verdict& verdict, const HealthBoard& board, TimePoint now,
                     const HealthBounds& bounds) {
  const auto still = now - board.poll_turned;
  verdict.detail["poll_loop"] = {{"seconds_since_turn", decimal_seconds(still)}};
  if (still > bounds.poll_loop)
    verdict.reasons.push_back("the poll loop has not turned for " + whole_seconds(still));
  if (board.fatal) verdict.reasons.push_back("fatal: " + to_valid_utf8(*board.fatal));
}

void judge_course(Verdict& verdict, const HealthBoard& board) {
  verdict.detail["started"] = board.started;
  verdict.detail["draining"] = board.draining;
  if (!board.started) verdict.reasons.emplace_back("not started yet");
  if (board.draining) verdict.reasons.emplace_back("draining");
}

void judge_kafka(Verdict& verdict, const HealthBoard& board) {
  verdict.detail["kafka"] = {{"reachable", nullptr}, {"joined", board.joined}};
  if (board.kafka_reachable) verdict.detail["kafka"]["reachable"] = *board.kafka_reachable;
  if (!board.kafka_reachable)
    verdict.reasons.emplace_back("kafka: not known to be reachable yet");
  else if (!*board.kafka_reachable)
    verdict.reasons.push_back(
        "kafka: no broker is reachable" +
        (board.kafka_error.empty() ? "" : ": " + to_valid_utf8(board.kafka_error)));
  if (!board.joined)
    verdict.reasons.push_back(
        "kafka: no assignment yet" +
        (board.group_error.empty() ? "" : ": " + to_valid_utf8(board.group_error)));
}

void judge_postgres(Verdict& verdict, const HealthBoard& board, TimePoint now) {
  verdict.detail["postgres"] = nullptr;
  if (!board.postgres) {
    verdict.reasons.emplace_back("postgres: not connected yet");
    return;
  }
  const PostgresFacts& facts = *board.postgres;
  const auto age = now - facts.since;
  const std::string error_class = to_valid_utf8(facts.error_class);
  verdict.detail["postgres"] = {{"up", facts.up},
                                {"writable", facts.writable},
                                {"seconds_since_change", decimal_seconds(age)}};
  if (!error_class.empty()) verdict.detail["postgres"]["error_class"] = error_class;
  if (facts.up && facts.writable) return;
  std::string reason = facts.up ? "postgres: not writable for " : "postgres: down for ";
  reason += whole_seconds(age);
  if (!error_class.empty()) reason += ": " + error_class;
  verdict.reasons.push_back(std::move(reason));
}

void judge_partitions(Verdict& verdict, const HealthBoard& board, TimePoint now,
                      const HealthBounds& bounds) {
  Json& partitions = verdict.detail["partitions"] = Json::array();
  for (const auto& [key, facts] : board.partitions) {
    Json detail = partition_detail(key, facts, now);
    if (const auto why = trouble(facts, now, bounds)) {
      detail["not_ready"] = *why;
      verdict.reasons.push_back(to_valid_utf8(key.first) + "/" + std::to_string(key.second) + ": " +
                                *why);
    }
    partitions.push_back(std::move(detail));
  }
}

}  // namespace

Verdict judge_live(const HealthBoard& board, TimePoint now, const HealthBounds& bounds) {
  Verdict verdict;
  judge_poll_loop(verdict, board, now, bounds);
  verdict.ok = verdict.reasons.empty();
  return verdict;
}

Verdict judge_ready(const HealthBoard& board, TimePoint now, const HealthBounds& bounds) {
  Verdict verdict;
  judge_course(verdict, board);
  judge_poll_loop(verdict, board, now, bounds);
  if (board.consumes) judge_kafka(verdict, board);
  judge_postgres(verdict, board, now);
  judge_partitions(verdict, board, now, bounds);
  verdict.ok = verdict.reasons.empty();
  return verdict;
}

}  // namespace hapax::observe
