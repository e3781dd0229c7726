#include "kafka/conf.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace hapax::kafka {
namespace {

std::string refusal_of(const Properties& properties, const Properties& if_known = {}) {
  try {
    make_conf(properties, if_known);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Conf, NamesEachPropertyThatIsRefusedAndQuotesNoValue) {
  const std::string text = refusal_of({{"client.id", "fine"},
                                       {"no.such.property", "s3cret"},
                                       {"security.protocol", "s3cret"},
                                       {"ssl.ca.location", "/no/such/file"}});
  const std::string librdkafka = std::string("librdkafka ") + rd_kafka_version_str();
  EXPECT_EQ(text,
            "kafka.no.such.property: " + librdkafka +
                " does not know this property\n"
                "kafka.security.protocol: " +
                librdkafka +
                " does not accept this value; its CONFIGURATION.md lists what it takes\n"
                "kafka.ssl.ca.location: cannot read /no/such/file: No such file or directory");
}

TEST(Conf, LeavesOutWhatThisVersionOfLibrdkafkaDoesNotKnowIfToldSo) {
  EXPECT_EQ(refusal_of({}, {{"no.such.property", "1"}}), "");
  EXPECT_NE(refusal_of({}, {{"linger.ms", "s3cret"}}), "");
}

TEST(Conf, AClientOfSettingsThatDoNotFitNamesTheProperty) {
  try {
    make_client(RD_KAFKA_PRODUCER, make_conf({{"security.protocol", "sasl_plaintext"},
                                              {"sasl.mechanism", "SCRAM-SHA-512"},
                                              {"linger.ms", "900000"},
                                              {"message.timeout.ms", "5"}}));
    FAIL() << "librdkafka took them";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("kafka: `message.timeout.ms`"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace hapax::kafka
