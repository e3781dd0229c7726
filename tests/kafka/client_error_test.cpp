#include "kafka/client_error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hapax::kafka {
namespace {

using testing::HasSubstr;

constexpr int kExpired = 10;  // X509_V_ERR_CERT_HAS_EXPIRED

TEST(ClientError, TellsWhatIsWrongWithACertificateInsteadOfThatItDoesNotVerify) {
  EXPECT_EQ(
      explain(RD_KAFKA_RESP_ERR__SSL,
              "ssl://k:9093/bootstrap: SSL handshake failed: error:0A000086:SSL "
              "routines::certificate verify failed: verify (after 7ms in state SSL_HANDSHAKE)",
              certificate_mistake(kExpired), ""),
      "ssl://k:9093/bootstrap: the broker's certificate has expired: renew it at the broker");
}

TEST(ClientError, ReadsTheLogAsAnError) {
  EXPECT_EQ(failure_in_log("[thrd:ssl://k:9093/bootstrap]: ssl://k:9093/bootstrap: Disconnected"),
            "ssl://k:9093/bootstrap: Disconnected");
  EXPECT_EQ(failure_in_log("[thrd:main]: x"), "x");
  EXPECT_EQ(failure_in_log("no thread"), "no thread");
}

TEST(ClientError, AsksForTlsInTheWordsOfEachLibrdkafka) {
  for (const char* text :
       {"ssl://k:9092/bootstrap: SSL handshake failed: error:0A000126:SSL routines::unexpected eof",
        "ssl://k:9092/bootstrap: Disconnected (after 1ms in state SSL_HANDSHAKE)",
        "ssl://k:9092/bootstrap: error:0A000126:SSL routines::unexpected eof while reading",
        "ssl://k:9092/bootstrap: SSL handshake failed: Disconnected: connecting to a PLAINTEXT "
        "broker listener?"})
    EXPECT_THAT(explain(RD_KAFKA_RESP_ERR__TRANSPORT, text, "", ""),
                HasSubstr("does this port speak TLS?"));
  for (const char* text :
       {"k:9093/bootstrap: Disconnected while requesting ApiVersion: might be caused by incorrect "
        "security.protocol configuration",
        "k:9093/bootstrap: Disconnected: connection closed by peer (after 2ms in state "
        "APIVERSION_QUERY)"})
    EXPECT_THAT(explain(RD_KAFKA_RESP_ERR__TRANSPORT, text, "", ""),
                HasSubstr("kafka.security.protocol does not name it"));
}

// In the words of Kafka 4.3, which librdkafka passes on.
TEST(ClientError, BlamesNoPasswordIfTheListenerHasNoSaslOrAnotherMechanism) {
  const std::string begin = "sasl_plaintext://k:9092/bootstrap: SASL ";
  const auto blames = HasSubstr("fix kafka.sasl.username");
  for (const char* mechanism : {"PLAIN", "SCRAM-SHA-512"}) {
    const std::string handshake = begin + mechanism + " mechanism handshake failed: Broker: ";
    const std::string none =
        explain(RD_KAFKA_RESP_ERR__AUTHENTICATION,
                handshake +
                    "Request not valid in current SASL state: broker's supported "
                    "mechanisms:  (after 2ms in state AUTH_HANDSHAKE)",
                "", mechanism);
    EXPECT_THAT(none, HasSubstr("this listener has no SASL"));
    EXPECT_THAT(none, testing::Not(blames));
    const std::string another = explain(
        RD_KAFKA_RESP_ERR__AUTHENTICATION,
        handshake + "Unsupported SASL mechanism: broker's supported mechanisms: OAUTHBEARER", "",
        mechanism);
    EXPECT_THAT(another, HasSubstr("mechanisms: OAUTHBEARER (this listener does not know our "
                                   "mechanism: set kafka.sasl.mechanism)"));
  }
  EXPECT_THAT(explain(RD_KAFKA_RESP_ERR__AUTHENTICATION,
                      begin + "authentication error: Authentication failed: Invalid username or "
                              "password",
                      "", "PLAIN"),
              blames);
}

TEST(ClientError, AsksForSaslIfBrokersOnlyHangUp) {
  const std::string down = "1/1 brokers are down";
  EXPECT_THAT(explain(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, down, "", ""),
              HasSubstr("this port may want SASL or TLS"));
  EXPECT_EQ(explain(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, down, "", "", true), down);
}

TEST(ClientError, DoesNotBlameTheProtocolOfABrokerThatDiedInAHandshake) {
  EXPECT_EQ(
      explain(RD_KAFKA_RESP_ERR__SSL,
              "GroupCoordinator: localhost:9092: SSL handshake failed: Disconnected: connecting "
              "to a PLAINTEXT broker listener?",
              "", "", true),
      "GroupCoordinator: localhost:9092: SSL handshake failed: Disconnected");
}

TEST(ClientError, AsksForAClientCertificateIfTheBrokerRefusesOurs) {
  for (const char* alert : {"sslv3 alert bad certificate: SSL alert number 42",
                            "sslv3 alert certificate unknown: SSL alert number 46",
                            "tlsv1 alert unknown ca: SSL alert number 48",
                            "tlsv13 alert certificate required: SSL alert number 116"})
    EXPECT_EQ(
        explain(
            RD_KAFKA_RESP_ERR__TRANSPORT,
            std::string("ssl://k:9093/bootstrap: Receive failed: error:0A000412:SSL routines::") +
                alert + " (after 0ms in state APIVERSION_QUERY, 1 identical error(s) suppressed)",
            "", ""),
        std::string("ssl://k:9093/bootstrap: the broker demands a client certificate "
                    "that it trusts: one that has not expired and whose CA the broker knows. "
                    "Name it with kafka.ssl.certificate.location and kafka.ssl.key.location, "
                    "then restart (it answered: Receive failed: error:0A000412:SSL routines::") +
            alert + ")");
  EXPECT_THAT(explain(RD_KAFKA_RESP_ERR__TRANSPORT,
                      "ssl://k:9093/1: x: SSL alert number 4 (after 0ms in state UP)", "", ""),
              testing::Not(HasSubstr("certificate")));
}

TEST(ClientError, NamesThePropertyOfAFileThatOpenSslRefuses) {
  EXPECT_EQ(explain_refused_settings("ssl.key.location failed: error:05800074:x509 certificate "
                                     "routines::key values mismatch"),
            "kafka.ssl.key.location: this key does not belong to kafka.ssl.certificate.location "
            "(error:05800074:x509 certificate routines::key values mismatch)");
  EXPECT_THAT(explain_refused_settings("ssl.key.location failed: error:0A080009:SSL routines::PEM"),
              HasSubstr("kafka.ssl.key.password is missing or is not its password"));
  EXPECT_EQ(explain_refused_settings("ssl.ca.location failed: error:05880009:x"),
            "kafka.ssl.ca.location: OpenSSL cannot use this (error:05880009:x)");
  EXPECT_THAT(explain_refused_settings("ssl.certificate.location failed: error:0A080009:SSL "
                                       "routines::PEM lib"),
              HasSubstr("no certificate in PEM"));
  EXPECT_THAT(explain_refused_settings("Failed to parse ssl.keystore.location PKCS#12 file: x: "
                                       "error:11800071:PKCS12 routines::mac verify failure"),
              HasSubstr("kafka.ssl.keystore.password"));
  EXPECT_THAT(explain_refused_settings("Private key check failed: error:0A0000B1:SSL "
                                       "routines::no certificate assigned"),
              HasSubstr("kafka.ssl.certificate.location"));
  EXPECT_THAT(explain_refused_settings("Invalid sasl.kerberos.kinit.cmd value: Property not "
                                       "available: \"sasl.kerberos.keytab\""),
              HasSubstr("kafka.sasl.mechanism: name it"));
  EXPECT_EQ(explain_refused_settings("`queued.min.messages` must be less"),
            "kafka: `queued.min.messages` must be less");
}

TEST(ClientError, TellsTheMistakesOfACertificateApart) {
  EXPECT_THAT(certificate_mistake(62), HasSubstr("another host"));
  EXPECT_THAT(certificate_mistake(9), HasSubstr("clocks"));
  for (const int unknown_authority : {18, 19, 20, 21})
    EXPECT_THAT(certificate_mistake(unknown_authority), HasSubstr("ssl.ca.location"));
  EXPECT_THAT(certificate_mistake(7), HasSubstr("X.509 error 7"));
}

TEST(ClientError, IsTheSameEachTimeItIsRepeated) {
  const auto again = [](const std::string& timing) {
    return explain(RD_KAFKA_RESP_ERR__TRANSPORT, "k:9092/1: Connect failed: refused" + timing, "",
                   "");
  };
  EXPECT_EQ(again(" (after 0ms in state CONNECT)"),
            again(" (after 7ms in state CONNECT, 2 identical error(s) suppressed)"));
}

TEST(ClientError, BlamesScramOnlyIfThisLibrdkafkaCannotDoIt) {
  EXPECT_TRUE(has_broken_scram(0x020002ff));
  EXPECT_TRUE(has_broken_scram(0x020600ff));
  EXPECT_FALSE(has_broken_scram(0x020601ff));
  EXPECT_FALSE(has_broken_scram(0x020800ff));
  EXPECT_THAT(explain(RD_KAFKA_RESP_ERR__AUTHENTICATION, "refused", "", "PLAIN"),
              HasSubstr("knows no such user or password"));
}

TEST(ClientError, NamesTheBrokerWhoseNextAddressIsTried) {
  EXPECT_EQ(broker_with_next_address("[thrd:localhost:9092/bootstrap]: localhost:9092/bootstrap: "
                                     "Connect to ipv6#[::1]:9092 failed: Connection refused"),
            "localhost:9092/bootstrap");
  EXPECT_EQ(broker_with_next_address("k:9092/1: Connect to ipv6#[::1]:9092 failed: refused"),
            "k:9092/1");
  EXPECT_EQ(broker_with_next_address("k:9092/1: Connect to ipv4#127.0.0.1:9092 failed: refused"),
            "");
  EXPECT_EQ(broker_with_next_address("1/1 brokers are down"), "");
}

// Consumer gives the cause to _ALL_BROKERS_DOWN, too: one sentence, so that it is logged once.
TEST(ClientError, IsTheSameOfARefusedPasswordUnderEachCode) {
  const std::string text =
      "sasl_ssl://k:9093/1: SASL authentication error: no (after 9ms in state X)";
  EXPECT_EQ(explain(RD_KAFKA_RESP_ERR__AUTHENTICATION, text, "", "PLAIN"),
            explain(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, text, "", "PLAIN"));
}

// A broker that is killed hangs up on requests, too.
TEST(ClientError, DoesNotBlameSettingsThatHaveWorked) {
  const std::string text =
      "sasl_ssl://k:9093/1: Disconnected while requesting ApiVersion: might be caused by incorrect "
      "security.protocol configuration (after 1ms in state APIVERSION_QUERY)";
  EXPECT_THAT(explain(RD_KAFKA_RESP_ERR__TRANSPORT, text, "", "PLAIN"),
              HasSubstr("kafka.security.protocol does not name it"));
  EXPECT_THAT(explain(RD_KAFKA_RESP_ERR__TRANSPORT, text, "", "PLAIN", true),
              testing::Not(HasSubstr("does not name it")));
}

TEST(ClientError, LeavesADisconnectOfAnIdleBrokerAlone) {
  EXPECT_TRUE(is_plain_disconnect(RD_KAFKA_RESP_ERR__TRANSPORT,
                                  "k:9092/1: Disconnected (after 600000ms in state UP)"));
  EXPECT_FALSE(is_plain_disconnect(
      RD_KAFKA_RESP_ERR__TRANSPORT,
      "k:9092/bootstrap: Disconnected while requesting ApiVersion (after 1ms in state "
      "APIVERSION_QUERY)"));
}

TEST(ClientError, NamesAFileThatCannotBeRead) {
  EXPECT_EQ(unreadable_file("ssl.ca.location", "/no/such/file"),
            "cannot read /no/such/file: No such file or directory");
  EXPECT_FALSE(unreadable_file("ssl.ca.location", "/tmp"));  // a folder of certificates
  EXPECT_FALSE(unreadable_file("ssl.ca.location", "probe"));
  EXPECT_FALSE(unreadable_file("client.id", "/no/such/file"));
}

TEST(ClientError, KnowsWhichLibrdkafkaDoesNotBearATopicThatIsMadeAgain) {
  EXPECT_FALSE(is_broken_by_another_id(0x020300ff));
  EXPECT_TRUE(is_broken_by_another_id(0x020400ff));
  EXPECT_TRUE(is_broken_by_another_id(0x020800ff));
  EXPECT_FALSE(is_broken_by_another_id(0x020a00ff));
}

}  // namespace
}  // namespace hapax::kafka
