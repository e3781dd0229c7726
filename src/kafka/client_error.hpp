// Why a broker could not be reached, as one sentence that also says how to fix it. librdkafka
// hands out the cause in pieces: a code, a text, what OpenSSL thought of the certificate (only to a
// callback), and a line in its log.
#pragma once

#include <librdkafka/rdkafka.h>

#include <optional>
#include <string>

namespace hapax::kafka {

// What is wrong with a broker's certificate, by OpenSSL's X509_V_ERR_ number, and how to fix it.
std::string certificate_mistake(int x509_error);

// Whether this librdkafka cannot prove itself to a Kafka of 4.0 or later by SCRAM: before 2.6.1 it
// sends a wrong nonce (librdkafka #4895), which Kafka no longer takes. `version`:
// rd_kafka_version().
bool has_broken_scram(int version);

// Whether this librdkafka's memory is damaged once a topic that it knew has another id. From 2.4 to
// 2.9 its cache of metadata keeps the old entry, which is freed (librdkafka #4778). `version`:
// rd_kafka_version().
bool is_broken_by_another_id(int version);

// `text`: librdkafka's; `certificate`: what certificate_mistake() said last, or "". `mechanism`:
// sasl.mechanism, or "". `worked`: the settings did, before: a broker that hangs up is stopping.
// Thread safety: pure.
std::string explain(rd_kafka_resp_err_t error, const std::string& text,
                    const std::string& certificate, const std::string& mechanism,
                    bool worked = false);

// Why librdkafka makes no client of settings each of which it took. `text`: its own. Names the
// property. Thread safety: pure.
std::string explain_refused_settings(const std::string& text);

// What librdkafka's log line of the facility FAIL says, as an error would say it.
std::string failure_in_log(const std::string& line);

// The connection was up and ended without an error: brokers close idle ones.
bool is_plain_disconnect(rd_kafka_resp_err_t error, const std::string& text);

// Why a file that a property names cannot be read, so that it is said before OpenSSL's "system
// lib"; nothing where it can be, or where the property names none. Blocks: on the file system.
std::optional<std::string> unreadable_file(const std::string& property, const std::string& value);

}  // namespace hapax::kafka
