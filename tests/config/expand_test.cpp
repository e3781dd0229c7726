#include "config/expand.hpp"

#include <gtest/gtest.h>

#include "config/file_text.hpp"
#include "sample.hpp"

namespace hapax::config {
namespace {

const Environment kEnvironment =
    environment({{"HOST", "kafka"}, {"EMPTY", ""}, {"RAW", "${HOST}$"}, {"DIR", "/tmp"}});

std::string expanded(const std::string& written) {
  std::vector<std::string> warnings;
  auto result = expand(written, kEnvironment, warnings);
  if (const auto* error = std::get_if<NotExpanded>(&result)) return "error: " + error->why;
  return std::get<std::string>(result);
}

TEST(Expand, PutsVariablesIn) {
  EXPECT_EQ(expanded("${HOST}:9092"), "kafka:9092");
  EXPECT_EQ(expanded("a${HOST}${HOST}b"), "akafkakafkab");
  EXPECT_EQ(expanded("${EMPTY}"), "");
  EXPECT_EQ(expanded("plain"), "plain");
}

TEST(Expand, TakesTheDefaultForWhatIsUnsetOrEmpty) {
  EXPECT_EQ(expanded("${NONE:-a:b}"), "a:b");
  EXPECT_EQ(expanded("${EMPTY:-x}"), "x");
  EXPECT_EQ(expanded("${HOST:-x}"), "kafka");
  EXPECT_EQ(expanded("${NONE:-}"), "");
}

TEST(Expand, TakesWhatIsPutInAsItIs) { EXPECT_EQ(expanded("${RAW}"), "${HOST}$"); }

TEST(Expand, WritesDollarsAndAtSigns) {
  EXPECT_EQ(expanded("a$$b"), "a$b");
  EXPECT_EQ(expanded("$${HOST}"), "${HOST}");
  EXPECT_EQ(expanded("@@home"), "@home");
  EXPECT_EQ(expanded("a@b"), "a@b");
}

TEST(Expand, NamesWhatIsMissing) {
  EXPECT_TRUE(has(expanded("${NONE}"), "variable NONE is not set"));
  EXPECT_TRUE(has(expanded("@/no/such/file"), "/no/such/file: No such file"));
  EXPECT_TRUE(has(expanded("@relative"), "absolute path"));
}

TEST(Expand, RefusesALoneDollarWithoutShowingTheValue) {
  for (const char* written :
       {"secret$", "$secret", "${secret", "${se cret}", "${}", "${1secret}"}) {
    const std::string error = expanded(written);
    EXPECT_TRUE(error.starts_with("error: ")) << written;
    EXPECT_FALSE(has(error, "cret")) << error;
  }
}

TEST(Expand, ReadsAFileWithoutItsLastNewline) {
  for (const auto& [content, value] :
       std::vector<std::pair<std::string, std::string>>{{"pw\n", "pw"},
                                                        {"pw\r\n", "pw"},
                                                        {"pw", "pw"},
                                                        {"a\n\n", "a\n"},
                                                        {"${HOST}", "${HOST}"},
                                                        {"pw\r", "pw\r"},
                                                        {"", ""}}) {
    const TemporaryFile file(content, 0600);
    EXPECT_EQ(expanded("@" + file.path()), value);
    EXPECT_EQ(expanded("@${DIR}" + file.path().substr(4)), value);
  }
}

TEST(Expand, RefusesAFileWithoutEnd) {
  EXPECT_TRUE(has(expanded("@/dev/zero"), "more than"));
  EXPECT_TRUE(has(expanded("@/tmp"), "directory"));
}

TEST(Expand, WarnsOfASecretThatIsOpenToOthers) {
  for (const mode_t mode : {0600U, 0400U, 0644U, 0640U, 0604U, 0620U, 0602U}) {
    const TemporaryFile file("pw", mode);
    std::vector<std::string> warnings;
    expand("@" + file.path(), kEnvironment, warnings);
    ASSERT_EQ(warnings.size(), (mode & 077) != 0 ? 1u : 0u) << std::oct << mode;
    if (!warnings.empty()) {
      EXPECT_TRUE(has(warnings[0], "chmod go-rwx " + file.path())) << warnings[0];
    }
  }
}

// The file's owner gave it to our group, as Kubernetes does with fsGroup.
TEST(Expand, TakesASecretOfAnotherOwnerByItsGroup) {
  const TemporaryFile file("pw", 0640), open_file("pw", 0644);
  if (chown(file.path().c_str(), 1, getegid()) != 0 ||
      chown(open_file.path().c_str(), 1, getegid()) != 0)
    GTEST_SKIP() << "only root gives files away";
  EXPECT_FALSE(open_to_others(file.path()));
  EXPECT_TRUE(open_to_others(open_file.path()));
}

TEST(Expand, NamesTheFileOfASecretThatIsReadAgain) {
  EXPECT_EQ(file_named_by("@/run/secret", kEnvironment), "/run/secret");
  EXPECT_EQ(file_named_by("@${DIR}/secret", kEnvironment), "/tmp/secret");
  for (const char* written : {"${HOST}", "@@/x", "plain", "", "@${NONE}"})
    EXPECT_EQ(file_named_by(written, kEnvironment), "") << written;
}

TEST(Expand, KnowsWhatStandsInTheFileItself) {
  EXPECT_EQ(literal_part("u:${PW}@h"), "u:@h");
  EXPECT_EQ(literal_part("${PW:-pw}"), "pw");
  EXPECT_EQ(literal_part("@/file"), "");
  EXPECT_EQ(literal_part("@@x"), "@@x");
  EXPECT_TRUE(is_indirect("@/file"));
  EXPECT_TRUE(is_indirect("a${B}"));
  EXPECT_FALSE(is_indirect("a$$b"));
  EXPECT_FALSE(is_indirect("@@x"));
}

}  // namespace
}  // namespace hapax::config
