// A worker ends while PostgreSQL does not keep the answer of a call.
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "outside/shop.hpp"
#include "sandbox/temporary_folder.hpp"

namespace hapax::support {
namespace {

struct RefusingShop : Shop {
  RefusingShop() : Shop(kNever, false, Site::on_mock_cluster) {}

  // As if it took longer than statement_timeout to keep an answer.
  void refuse_answers() {
    site.database().run(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE 'canceling statement due to statement timeout' USING ERRCODE = '57014'; END $$;"
        "CREATE TRIGGER refuse BEFORE UPDATE ON hapax.idempotency_keys FOR EACH ROW WHEN "
        "(NEW.status = 'answered') EXECUTE FUNCTION refuse()");
  }
  void take_answers() { site.database().run("DROP TRIGGER refuse ON hapax.idempotency_keys"); }
  std::unique_ptr<WorkerProcess> worker_that_leaves_in(const std::string& time) {
    nlohmann::json patch = this->patch();
    patch["worker"].update({{"revoke_timeout", "1s"}, {"shutdown_timeout", time}});
    return site.worker("w", patch);
  }
};

TEST(AnswerNotKept, IsNamedIfItIsLostWithTheProcess) {
  RefusingShop shop;
  shop.refuse_answers();
  shop.send(0);
  const auto worker = shop.worker_that_leaves_in("4s");
  worker->await("calls_delayed");
  worker->terminate();
  worker->ended();
  EXPECT_EQ(worker->count("answer_not_kept", {{"offset", 0}}), 1U) << worker->output();
  EXPECT_EQ(shop.gateway.calls(), 1);
}

TEST(AnswerNotKept, OfAReplayIsWaitedForAtSigterm) {
  RefusingShop shop;
  Outgoing broken = shop.site.payment(0);
  broken.payload = "{";
  shop.producer.send(broken);
  const auto worker = shop.worker_that_leaves_in("60s");
  worker->await("dead_letter", {{"reason", "rejected"}});
  shop.refuse_answers();
  const sandbox::TemporaryFolder folder("hapax-charges");
  const std::string fixed = folder.path() / "fixed.json";
  std::ofstream(fixed) << *shop.site.payment(0).payload;
  const Said said = hapax({"dead", "replay", "1", "--payload", fixed, "--no-wait", "--why", "fixed",
                           "--yes", "--url", shop.site.database().owner().url},
                          worker->config());
  ASSERT_EQ(said.code, 0) << said.text;
  worker->await("calls_delayed");
  worker->terminate();
  worker->await("stopping");
  std::this_thread::sleep_for(std::chrono::seconds(2));  // it would have given up
  shop.take_answers();
  worker->ended();
  EXPECT_EQ(shop.value("SELECT count(*) FROM charges"), "1") << worker->output();
  EXPECT_EQ(shop.gateway.calls(), 1);
}

}  // namespace
}  // namespace hapax::support
