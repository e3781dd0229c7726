#include "config/expand.hpp"

#include <gtest/gtest.h>

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

TEST(Expand, WarnsOfASecretThatEveryUserCanRead) {
  const TemporaryFile open_file("pw", 0644), closed_file("pw", 0640);
  std::vector<std::string> warnings;
  expand("@" + closed_file.path(), kEnvironment, warnings);
  EXPECT_TRUE(warnings.empty());
  expand("@" + open_file.path(), kEnvironment, warnings);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(has(warnings[0], open_file.path())) << warnings[0];
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
