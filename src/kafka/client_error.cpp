#include "kafka/client_error.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

namespace hapax::kafka {
namespace {

// OpenSSL's numbers, which are part of its interface. They are repeated here because this folder
// does not include OpenSSL's headers.
enum : int {
  kNotYetValid = 9,
  kExpired = 10,
  kSelfSigned = 18,
  kSelfSignedInChain = 19,
  kNoLocalIssuer = 20,
  kNoLeafSignature = 21,
  kHostMismatch = 62,
  kAddressMismatch = 64,
};

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// Removes librdkafka's timing, because it makes each repetition a new sentence.
std::string without_timing(const std::string& text) {
  const auto at = text.rfind(" (after ");
  return at == std::string::npos ? text : text.substr(0, at);
}

// "sasl_ssl://localhost:9093/bootstrap: ", or "".
std::string broker_of(const std::string& text) {
  const auto scheme = text.find("://");
  const auto end = text.find(": ", scheme == std::string::npos ? 0 : scheme);
  return scheme == std::string::npos || end == std::string::npos ? "" : text.substr(0, end + 2);
}

// Whether a broker has refused our certificate, or the lack of one, by a TLS alert (RFC 8446, 6).
// The alert tells little: Java also sends "certificate unknown" for an expired certificate.
bool is_refusal_of_our_certificate(const std::string& text) {
  for (const std::string_view alert : {"42", "43", "44", "45", "46", "48", "116"})
    if (has(text + " ", "SSL alert number " + std::string(alert) + " ")) return true;
  return false;
}

}  // namespace

std::string certificate_mistake(int x509_error) {
  switch (x509_error) {
    case kExpired: return "the broker's certificate has expired: renew it at the broker";
    case kNotYetValid:
      return "the broker's certificate is not valid yet: compare the clocks of broker and worker";
    case kHostMismatch:
    case kAddressMismatch:
      return "the broker's certificate names another host: name brokers in "
             "kafka.bootstrap.servers, and in their advertised.listeners, as their certificates do";
    case kSelfSigned:
    case kSelfSignedInChain:
    case kNoLocalIssuer:
    case kNoLeafSignature:
      return "no CA that we trust signed the broker's certificate: name the right one with "
             "kafka.ssl.ca.location";
    default:
      return "the broker's certificate does not verify (X.509 error " + std::to_string(x509_error) +
             "): renew it, or name its CA with kafka.ssl.ca.location";
  }
}

bool has_broken_scram(int version) { return version < 0x02060100; }

bool is_broken_by_another_id(int version) { return version >= 0x02040000 && version < 0x020a0000; }

std::string explain(rd_kafka_resp_err_t error, const std::string& text,
                    const std::string& certificate, const std::string& mechanism, bool worked) {
  const std::string said = without_timing(text);
  // Before a password is looked at, the broker answers which mechanisms this listener has.
  if (has(said, "Request not valid in current SASL state"))
    return said +
           " (this listener has no SASL: name one that has in kafka.bootstrap.servers, or set "
           "kafka.security.protocol to plaintext or ssl; no password was looked at)";
  if (has(said, "Unsupported SASL mechanism"))
    return said + " (this listener does not know our mechanism: set kafka.sasl.mechanism)";
  if (error == RD_KAFKA_RESP_ERR__AUTHENTICATION || has(said, "SASL authentication error")) {
    if (mechanism.starts_with("SCRAM") && has_broken_scram(rd_kafka_version()))
      return said + " (librdkafka " + rd_kafka_version_str() +
             " cannot do SCRAM with Kafka 4. Use librdkafka 2.6.1 or later, or sasl.mechanism "
             "PLAIN over TLS. If Kafka is older, the user or password is wrong)";
    return said +
           " (Kafka knows no such user or password: fix kafka.sasl.username and "
           "kafka.sasl.password; a worker reads their @files again by itself)";
  }
  if (is_refusal_of_our_certificate(said))
    return broker_of(said) +
           "the broker demands a client certificate that it trusts: one that has not expired and "
           "whose CA the broker knows. Name it with kafka.ssl.certificate.location and "
           "kafka.ssl.key.location, then restart (it answered: " +
           said.substr(broker_of(said).size()) + ")";
  // Decided by the text, because the code is _SSL or _TRANSPORT, depending on librdkafka's version.
  if (has(said, "certificate verify failed"))
    return certificate.empty() ? said : broker_of(said) + certificate;
  // A broker that dies in a handshake ends it. librdkafka then asks about the protocol.
  if (worked) return said.substr(0, said.find(": connecting to a PLAINTEXT broker listener"));
  // If the broker hangs up before librdkafka looks at its handshake, only the last text comes.
  if (has(said, "SSL handshake failed") || has(said, "SSL routines::unexpected eof") ||
      has(text, "in state SSL_HANDSHAKE"))
    return said + " (does this port speak TLS? See kafka.security.protocol)";
  if (has(text, "while requesting ApiVersion") || has(text, "in state APIVERSION_QUERY"))
    return broker_of(said) +
           "the broker hung up on our first request: this port speaks TLS or SASL and "
           "kafka.security.protocol does not name it, or the other way round";
  // It follows from other errors, if there are any. A listener with SASL ends the connection of a
  // client without it, which is no error to librdkafka.
  if (has(said, "brokers are down"))
    return said +
           " (if they run, this port may want SASL or TLS: does kafka.security.protocol name it?)";
  return said;
}

std::string explain_refused_settings(const std::string& text) {
  if (has(text, "sasl.kerberos"))
    return "kafka.sasl.mechanism: name it, such as PLAIN or SCRAM-SHA-512: without it librdkafka "
           "takes Kerberos's (" +
           text + ")";
  if (has(text, "ssl.keystore.location"))
    return "kafka.ssl.keystore.location: it is no PKCS#12 file, or kafka.ssl.keystore.password is "
           "not its password (" +
           text + ")";
  if (has(text, "no certificate assigned"))
    return "kafka.ssl.key.location: name its certificate, too, with "
           "kafka.ssl.certificate.location (" +
           text + ")";
  constexpr std::string_view kFailed = " failed: ";
  const auto end = text.find(kFailed);
  if (!text.starts_with("ssl.") || end == std::string::npos) return "kafka: " + text;
  const std::string property = "kafka." + text.substr(0, end);
  const std::string why = " (" + text.substr(end + kFailed.size()) + ")";
  if (has(why, "key values mismatch"))
    return property + ": this key does not belong to kafka.ssl.certificate.location" + why;
  if (property == "kafka.ssl.key.location")
    return property +
           ": OpenSSL cannot read this key: kafka.ssl.key.password is missing or is not its "
           "password, or the file is not PEM" +
           why;
  if (has(why, "PEM lib") || has(why, "no start line"))
    return property + ": there is no certificate in PEM in it (is it DER, or the key?)" + why;
  return property + ": OpenSSL cannot use this" + why;
}

std::string failure_in_log(const std::string& line) {
  constexpr std::string_view kThread = "[thrd:";
  const auto end = line.find("]: ");
  return line.starts_with(kThread) && end != std::string::npos ? line.substr(end + 3) : line;
}

std::string broker_with_next_address(const std::string& text) {
  constexpr std::string_view kFailed = ": Connect to ipv6#";
  const std::string said = failure_in_log(text);
  const auto at = said.find(kFailed);
  return at == std::string::npos ? "" : said.substr(0, at);
}

bool is_plain_disconnect(rd_kafka_resp_err_t error, const std::string& text) {
  return error == RD_KAFKA_RESP_ERR__TRANSPORT && has(text, "in state UP");
}

std::optional<std::string> unreadable_file(const std::string& property, const std::string& value) {
  constexpr std::array<std::string_view, 5> kFiles = {"ssl.ca.location", "ssl.certificate.location",
                                                      "ssl.key.location", "ssl.keystore.location",
                                                      "ssl.crl.location"};
  for (const std::string_view file : kFiles)
    if (property == file && value != "probe" && !value.empty() && access(value.c_str(), R_OK) != 0)
      return "cannot read " + value + ": " + std::generic_category().message(errno);
  return std::nullopt;
}

}  // namespace hapax::kafka
