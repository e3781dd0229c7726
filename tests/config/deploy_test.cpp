// The configurations under deploy/ load. tests/check/kubernetes.py holds the rest of that folder.
#include <gtest/gtest.h>

#include <regex>

#include "config/gate.hpp"
#include "sample.hpp"

namespace hapax::config {
namespace {

// What stands in deploy/, with files of its own in the place of mounted secrets.
class Shipped {
 public:
  std::string text(const std::string& name) const {
    static const std::regex tokens("/run/secrets/[^\"]+/tokens"), others("/run/secrets/[^\"]+");
    return std::regex_replace(
        std::regex_replace(source_file("deploy/" + name), tokens, tokens_.path()), others,
        secret_.path());
  }

 private:
  TemporaryFile secret_{"host=db dbname=payments user=hapax_worker password=pw\n", 0600};
  TemporaryFile tokens_{"shop " + std::string(64, 'a') + "\n", 0600};
};

TEST(Deploy, HasConfigurationsOfAWorkerThatLoad) {
  const Shipped shipped;
  const Variables set{{"KAFKA", "kafka:9092"},
                      {"DATABASE_URL", "postgresql:///payments"},
                      {"POD_NAME", "worker-0"},
                      {"POD_NAMESPACE", "payments"}};
  for (const char* const name : {"worker.json", "kubernetes/payments/worker.json"}) {
    const Loaded loaded = load_text(shipped.text(name), environment(set));
    ASSERT_TRUE(loaded.config) << name << ": " << format(loaded.problems);
    EXPECT_TRUE(loaded.warnings.empty()) << name << ": " << loaded.warnings.front();
    EXPECT_EQ(loaded.config->admin.listen->host, "0.0.0.0") << name;
  }
}

TEST(Deploy, MakesEachPodAStaticMemberWithANameOfItsOwn) {
  const Shipped shipped;
  const Loaded loaded =
      load_text(shipped.text("kubernetes/payments/worker.json"),
                environment({{"POD_NAME", "worker-0"}, {"POD_NAMESPACE", "payments"}}));
  ASSERT_TRUE(loaded.config) << format(loaded.problems);
  EXPECT_EQ(loaded.config->kafka.properties.at("group.instance.id"), "worker-0");
  EXPECT_EQ(loaded.config->worker.name, "payments/worker-0");
}

TEST(Deploy, HasAConfigurationOfAGateThatLoads) {
  const Shipped shipped;
  const LoadedGate loaded =
      load_gate_text(shipped.text("kubernetes/payments/gate.json"), environment({}));
  ASSERT_TRUE(loaded.config) << format(loaded.problems);
  EXPECT_TRUE(loaded.warnings.empty()) << loaded.warnings.front();
}

}  // namespace
}  // namespace hapax::config
