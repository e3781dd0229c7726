#include "store/worker/positions.hpp"

#include "sql_statements.hpp"

namespace hapax::store {

const char* name_of(Jump jump) {
  switch (jump) {
    case Jump::none: break;
    case Jump::first_start: return "first_start";
    case Jump::foreign_reset: return "foreign_reset";
    case Jump::log_start: return "log_start";
    case Jump::decision: return "decision";
    case Jump::rewind: return "rewind";
    case Jump::skip: return "skip";
  }
  return "none";
}

const char* why_of(Jump jump) {
  switch (jump) {
    case Jump::first_start: return "the group's first start here, by kafka.initial";
    case Jump::foreign_reset: return "the group's offset in Kafka was set by something else";
    case Jump::log_start: return "Kafka deleted what came before";
    case Jump::decision: return "as `hapax resume` decided, see hapax.operator_log";
    default: return "";
  }
}

void record_position_change(Transaction& transaction, const PositionChange& change) {
  if (transaction.run("SELECT to_regclass('hapax.position_changes')")[0][0].is_null()) return;
  transaction.run(
      sql::kInsertPositionChange,
      {change.group, change.partition.first, change.partition.second, change.generation,
       Parameter(change.from), change.to, name_of(change.jump), change.who, change.why});
}

}  // namespace hapax::store
