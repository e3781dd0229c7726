// Why a broker could not be reached, as one sentence that also tells how to fix it. librdkafka
// gives the cause in pieces: a code, a text and a line in its log. What OpenSSL found wrong with
// the certificate goes to a callback only.
#pragma once

#include <librdkafka/rdkafka.h>

#include <optional>
#include <string>

namespace hapax::kafka {

// What is wrong with a broker's certificate, by OpenSSL's X509_V_ERR_ number, and how to fix it.
std::string certificate_mistake(int x509_error);

// Whether this librdkafka cannot authenticate by SCRAM to a Kafka of 4.0 or later. Before 2.6.1 it
// sends a wrong nonce (librdkafka #4895), which Kafka no longer takes. `version`:
// rd_kafka_version().
bool has_broken_scram(int version);

// Whether this librdkafka's memory is damaged once a topic that it knew has another id. From 2.4 to
// 2.9 its cache of metadata keeps the old entry, which is freed (librdkafka #4778). `version`:
// rd_kafka_version().
bool is_broken_by_another_id(int version);

// `text`: librdkafka's. `certificate`: the last text of certificate_mistake(), or "". `mechanism`:
// sasl.mechanism, or "". `worked`: the settings worked before, so a broker that hangs up is
// stopping.
// Thread safety: pure.
std::string explain(rd_kafka_resp_err_t error, const std::string& text,
                    const std::string& certificate, const std::string& mechanism,
                    bool worked = false);

// Why librdkafka makes no client, though it took each setting alone. Names the property. `text`:
// librdkafka's. Thread safety: pure.
std::string explain_refused_settings(const std::string& text);

// Makes an error's text of a line in librdkafka's log with the facility FAIL.
std::string failure_in_log(const std::string& line);

// The broker, such as "localhost:9092/bootstrap", if this tells that an IPv6 address of its name
// did not connect. librdkafka then goes on with the name's next address, after a second. Else "".
std::string broker_with_next_address(const std::string& text);

// Whether the connection was up and ended without an error. Brokers close idle connections.
bool is_plain_disconnect(rd_kafka_resp_err_t error, const std::string& text);

// Why a file that a property names cannot be read. OpenSSL would only report "system lib". Nothing
// if the file can be read, or if the property names no file.
// Blocks: on the file system.
std::optional<std::string> unreadable_file(const std::string& property, const std::string& value);

}  // namespace hapax::kafka
