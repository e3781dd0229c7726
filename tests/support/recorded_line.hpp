// A line that `hapax record` writes, and what it means: what writes it and what reads it are
// tested in two binaries.
#pragma once

namespace hapax::support {

// Behind {"topic":"…: key "k", payload "\xff\0\x01", headers id=p1 and raw=the payload, and one
// without a value.
inline constexpr const char* kRecordedLine =
    R"(","partition":1,"kafka_offset":0,"message_timestamp":1700000000123,)"
    R"("timestamp_type":"create_time",)"
    R"("message_key":{"text":"k"},"headers":[{"name":{"text":"id"},"value":{"text":"p1"}},)"
    R"({"name":{"text":"raw"},"value":{"base64":"/wAB"}},{"name":{"text":"none"},"value":null}],)"
    R"("payload":{"base64":"/wAB"}})";

}  // namespace hapax::support
