#include "kafka/produce.hpp"

#include <iterator>
#include <stdexcept>

namespace hapax::kafka {
namespace {

using HeadersHandle = std::unique_ptr<rd_kafka_headers_t, Destroyer<rd_kafka_headers_destroy>>;

HeadersHandle headers_of(const OutgoingRecord& record) {
  HeadersHandle headers(rd_kafka_headers_new(record.headers.size()));
  for (const auto& [name, value] : record.headers)
    if (rd_kafka_header_add(headers.get(), name.data(), static_cast<ssize_t>(name.size()),
                            value ? value->data() : nullptr,
                            value ? static_cast<ssize_t>(value->size()) : 0))
      throw std::runtime_error("producing: librdkafka refuses a header");
  return headers;
}

}  // namespace

ErrorHandle produce(rd_kafka_t* client, const OutgoingRecord& record, void* opaque,
                    std::int32_t partition) {
  using Memory = decltype(rd_kafka_vu_t{}.u.mem);
  const auto memory = [](const std::optional<std::string>& bytes) {
    if (!bytes) return Memory{nullptr, 0};
    return Memory{const_cast<char*>(bytes->data()), bytes->size()};  // copied, not written
  };
  HeadersHandle headers = headers_of(record);
  const rd_kafka_vu_t fields[] = {{RD_KAFKA_VTYPE_TOPIC, {.cstr = record.topic.c_str()}},
                                  {RD_KAFKA_VTYPE_PARTITION, {.i32 = partition}},
                                  {RD_KAFKA_VTYPE_MSGFLAGS, {.i = RD_KAFKA_MSG_F_COPY}},
                                  {RD_KAFKA_VTYPE_KEY, {.mem = memory(record.key)}},
                                  {RD_KAFKA_VTYPE_VALUE, {.mem = memory(record.payload)}},
                                  {RD_KAFKA_VTYPE_OPAQUE, {.ptr = opaque}},
                                  {RD_KAFKA_VTYPE_HEADERS, {.headers = headers.get()}}};
  ErrorHandle error(rd_kafka_produceva(client, fields, std::size(fields)));
  if (!error) headers.release();  // librdkafka's now
  return error;
}

}  // namespace hapax::kafka
