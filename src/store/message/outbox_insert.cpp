#include "store/message/outbox_insert.hpp"

#include "sql_statements.hpp"
#include "store/quote.hpp"

namespace hapax::store {

void prepare_published(Session& session) { session.prepare(sql::kInsertOutbox); }

void add_published(Transaction& transaction, const std::vector<Published>& records) {
  if (records.empty()) return;
  ArrayLiteral topics, keys, payloads, headers, names, generations, partitions, offsets;
  const auto add_bytes = [](ArrayLiteral& to, const std::optional<std::string>& bytes) {
    bytes ? to.add_bytes(*bytes) : to.add_null();
  };
  for (const Published& record : records) {
    topics.add(record.topic);
    add_bytes(keys, record.key);
    add_bytes(payloads, record.payload);
    headers.add(record.headers);
    names.add(record.idempotency_key);
    generations.add(std::int64_t{record.source.generation});
    partitions.add(std::int64_t{record.source.partition});
    offsets.add(record.source.offset);
  }
  const Source& source = records.front().source;
  const std::string literals[] = {text_literal(source.group),   std::move(topics).text(),
                                  std::move(keys).text(),       std::move(payloads).text(),
                                  std::move(headers).text(),    std::move(names).text(),
                                  text_literal(source.topic),   std::move(generations).text(),
                                  std::move(partitions).text(), std::move(offsets).text()};
  transaction.add_own(transaction.session().execute_literals(sql::kInsertOutbox, literals));
}

}  // namespace hapax::store
