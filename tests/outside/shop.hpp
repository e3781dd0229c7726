// Workers that charge a gateway, for the tests of calls to the outside.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/command.hpp"
#include "support/gateway.hpp"
#include "support/site.hpp"

namespace hapax::support {

inline constexpr const char* kCharges =
    "CREATE TABLE charges (payment text, charge text, amount_minor bigint);"
    "GRANT SELECT, INSERT ON charges TO hapax_worker";

inline const nlohmann::json kIdempotent = {{"repeat", "idempotent"}, {"remembers", "1h"}};
inline const nlohmann::json kQueryable = {{"repeat", "queryable"}};
inline const nlohmann::json kNever = {{"repeat", "never"}};

struct Shop {
  explicit Shop(
      nlohmann::json rules, bool keeps_keys = true,
      Site (*make)(int) = [](int partitions) { return Site(partitions); })
      : site(make(2)), outside(std::move(rules)), gateway(keeps_keys) {
    outside.update({{"lease", "2s"}, {"max_duration", "5s"}, {"concurrency", 8}});
    site.database().run(kCharges);
  }
  nlohmann::json patch() const {
    return {{"worker", {{"lanes", batch > 1 ? 1 : 4}}},
            {"route",
             {{"handler", "charges"},
              {"plugin", HAPAX_BINARY_DIR "/lib/libcharges.so"},
              {"batch", batch},
              {"options", {{"gateway", gateway.url()}}},
              {"outside", outside}}}};
  }
  std::unique_ptr<WorkerProcess> worker(const std::string& name,
                                        const std::string& crash_at = {}) const {
    return site.worker(name, patch(), crash_at);
  }
  void send(int number, const std::string& told = {}) {
    producer.send(
        site.payment(number, told.empty() ? nlohmann::json() : nlohmann::json{{"gateway", told}}));
  }
  void await_charges(int count) {
    site.await("SELECT count(*) FROM charges", std::to_string(count));
  }
  std::string value(const std::string& sql) { return site.database().value(sql); }
  // Each of `count` payments was charged once, and booked once.
  void expect_exact(int count) {
    const auto charged = gateway.charges();
    EXPECT_EQ(charged.size(), static_cast<std::size_t>(count));
    for (const auto& [payment, times] : charged) EXPECT_EQ(times, 1) << payment;
    EXPECT_EQ(value("SELECT count(*) || ' ' || count(DISTINCT payment) FROM charges"),
              std::to_string(count) + " " + std::to_string(count));
    EXPECT_EQ(value("SELECT count(*) FROM hapax.idempotency_keys WHERE status <> 'completed'"),
              "0");
  }

  Site site;
  Producer producer{site.bootstrap()};
  nlohmann::json outside;
  int batch = 1;  // answers that are booked together; above 1: by one lane, so that some are
  Gateway gateway;
};

inline Said decide(const Shop& shop, const WorkerProcess& worker, const std::string& key,
                   const std::vector<std::string>& how) {
  std::vector<std::string> arguments = {"outside", "decide", key};
  arguments.insert(arguments.end(), how.begin(), how.end());
  arguments.insert(arguments.end(), {"--why", "the gateway's page", "--yes", "--url",
                                     shop.site.database().owner().url});
  return hapax(arguments, worker.config());
}

}  // namespace hapax::support
