// Files of the gate that change while it runs: what is wrong costs nothing.
#include <gtest/gtest.h>

#include <fstream>

#include "gate/callers.hpp"
#include "gate/tls.hpp"
#include "key/sha256.hpp"
#include "sandbox/temporary_folder.hpp"
#include "support/certificates.hpp"

namespace hapax::gate {
namespace {

using support::Authority;
using support::Certificate;

class GateFiles : public testing::Test {
 protected:
  // The error at the start of a gate with these files; "" if it takes them.
  static std::string refusal(const config::GateTls& files) {
    try {
      const Tls tls(files);
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }

  std::string tenant_of(const Callers& callers, const std::string& token) const {
    Request request;
    request.headers = {{"authorization", "Bearer " + token}};
    return callers.caller_of(request, std::nullopt, std::nullopt).tenant;
  }

  sandbox::TemporaryFolder folder{"files"};
  Authority authority{folder.path(), "authority"};
  Certificate own = authority.issue("gate", "localhost");
};

TEST_F(GateFiles, OfTlsAreNamedIfTheyCannotBeUsed) {
  const Certificate other = authority.issue("other");
  const Certificate locked =
      authority.issue("locked", {}, support::Valid::now, "a password that nobody is asked for");
  const Certificate rsa =
      authority.issue("rsa", {}, support::Valid::now, "", support::KeyType::rsa);
  const auto names = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_EQ(refusal({own.certificate, own.key, authority.certificate()}), "");
  EXPECT_TRUE(names(refusal({own.certificate, other.key, ""}), "gate.tls.key"));
  EXPECT_TRUE(names(refusal({own.certificate, own.certificate, ""}), "gate.tls.key"));
  EXPECT_TRUE(names(refusal({own.certificate, rsa.key, ""}), "gate.tls.key"));
  EXPECT_TRUE(names(refusal({rsa.certificate, own.key, ""}), "gate.tls.key"));
  EXPECT_TRUE(names(refusal({locked.certificate, locked.key, ""}), "gate.tls.key"));
  EXPECT_TRUE(names(refusal({own.key, own.key, ""}), "gate.tls.certificate"));
  EXPECT_TRUE(names(refusal({own.certificate, own.key, own.key}), "gate.tls.client_ca"));
  EXPECT_TRUE(names(refusal({own.certificate, "/none", ""}), "/none: No such file"));
}

TEST_F(GateFiles, OfTlsAreTakenOnceTheyBelongTogether) {
  Tls tls({own.certificate, own.key, ""});
  const auto before = tls.context();
  tls.look();
  EXPECT_EQ(tls.context(), before) << "nothing has changed";
  const Certificate next = authority.issue("next", "localhost");
  std::filesystem::rename(next.certificate, own.certificate);
  tls.look();
  EXPECT_EQ(tls.context(), before) << "the key is another certificate's";
  std::filesystem::remove(own.certificate);
  tls.look();
  EXPECT_EQ(tls.context(), before);
  authority.issue("gate", "localhost");
  tls.look();
  EXPECT_NE(tls.context(), before);
}

// The two files are moved one after the other, and the gate looks in between.
TEST_F(GateFiles, OfTlsMayChangeTheTypeOfTheKey) {
  using support::KeyType;
  for (const KeyType type : {KeyType::rsa, KeyType::ecdsa}) {
    Tls tls({own.certificate, own.key, ""});
    const auto before = tls.context();
    const Certificate next = authority.issue("next", "localhost", support::Valid::now, "", type);
    std::filesystem::rename(next.key, own.key);
    tls.look();
    EXPECT_EQ(tls.context(), before) << "the key is another certificate's";
    std::filesystem::rename(next.certificate, own.certificate);
    tls.look();
    EXPECT_NE(tls.context(), before);
  }
}

TEST_F(GateFiles, OfTokensAreTakenUnlessTheyAreWrong) {
  const std::filesystem::path file = folder.path() / "tokens";
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  const auto line = [](const std::string& token) {
    return "ann " + key::hex(key::sha256(token)) + "\n";
  };
  write(line("old"));
  Callers callers({.tokens = {{"ann", key::sha256("old")}}, .tokens_file = file}, false);
  callers.look();
  EXPECT_EQ(tenant_of(callers, "old"), "ann");
  for (const std::string& wrong :
       {std::string("nonsense\n"), std::string("\n"), line("new") + "ann\n"}) {
    write(wrong);
    callers.look();
    EXPECT_EQ(tenant_of(callers, "old"), "ann") << wrong;
    EXPECT_EQ(tenant_of(callers, "new"), "") << wrong;
  }
  write(line("new"));
  callers.look();
  EXPECT_EQ(tenant_of(callers, "new"), "ann");
  EXPECT_EQ(tenant_of(callers, "old"), "");
  std::filesystem::remove(file);
  callers.look();
  EXPECT_EQ(tenant_of(callers, "new"), "ann");
}

}  // namespace
}  // namespace hapax::gate
