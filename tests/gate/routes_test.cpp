#include "gate/routes.hpp"

#include <gtest/gtest.h>

namespace hapax::gate {
namespace {

// "path name=value …", or "none".
std::string found(const Routes& routes, const std::string& path) {
  const auto match = routes.find(path);
  if (!match) return "none";
  std::string text = routes[match->route].path;
  for (const auto& [name, value] : match->parameters) text += " " + name + "=" + value;
  return text;
}

TEST(GateRoutes, APathBelongsToOneRoute) {
  const Routes routes({{"/a/{x}"}, {"/a/b"}, {"/{y}/b"}, {"/a/{x}/c/{z}"}, {"/"}});
  EXPECT_EQ(found(routes, "/a/b"), "/a/b");
  EXPECT_EQ(found(routes, "/a/7"), "/a/{x} x=7");
  EXPECT_EQ(found(routes, "/c/b"), "/{y}/b y=c");
  EXPECT_EQ(found(routes, "/a/%41%2f/c/%c3%A9"), "/a/{x}/c/{z} x=A/ z=\xC3\xA9");
  EXPECT_EQ(found(routes, "/"), "/");
  EXPECT_EQ(found(routes, "/a/%62"), "/a/b");
  EXPECT_EQ(found(routes, "/%61/7"), "/a/{x} x=7");
  for (const char* path :
       {"/a/.", "/a/%2e%2E", "/a/%00", "/a/x%00", "/a/%ff", "/a/%c3", "/a/%80", "", "a/b", "/a",
        "/a/", "/a/b/", "//b", "/a/%4", "/a/%zz", "/A/b/c", "/a/7/c/", "/%61/7/x"})
    EXPECT_EQ(found(routes, path), "none") << path;
}

}  // namespace
}  // namespace hapax::gate
