#include "payload/avro.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hapax::payload {
namespace {

using namespace std::string_literals;

std::string decoded(const std::string& schema, const std::string& bytes,
                    std::vector<SchemaText::Reference> references = {}) {
  try {
    return AvroDecoder({"AVRO", schema, std::move(references)}).decode({.body = bytes});
  } catch (const NotDecodable& error) {
    return "! "s + error.what();
  }
}

void expect_refused(const std::string& schema, const std::string& bytes, const std::string& why) {
  const std::string text = decoded(schema, bytes);
  EXPECT_TRUE(text.starts_with("! ") && text.find(why) != std::string::npos) << schema << text;
}

TEST(Avro, WritesEachPrimitiveAsJson) {
  EXPECT_EQ(decoded(R"("null")", ""), "null");
  EXPECT_EQ(decoded("string", "\6a\"\n"s), R"("a\"\n")");  // as older tools write the schema
  EXPECT_EQ(decoded(R"("boolean")", "\1"), "true");
  EXPECT_EQ(decoded(R"("int")", "\x7f"), "-64");
  EXPECT_EQ(decoded(R"("int")", "\xff\xff\xff\xff\x0f"), "-2147483648");
  EXPECT_EQ(decoded(R"("long")", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
            "-9223372036854775808");
  EXPECT_EQ(decoded(R"("float")", "\xcd\xcc\xcc\x3d"), "0.1");
  EXPECT_EQ(decoded(R"("double")", "\x9a\x99\x99\x99\x99\x99\xb9\x3f"), "0.1");
  EXPECT_EQ(decoded(R"("double")", "\0\0\0\0\0\0\xf8\x7f"s), R"("NaN")");
  EXPECT_EQ(decoded(R"("float")", "\0\0\x80\xff"s), R"("-Infinity")");
}

std::string of_bytes(const std::string& schema) {
  return R"({"type": "record", "name": "R", "fields": [{"name": "b", "type": )" + schema + "}]}";
}

TEST(Avro, WritesBytesAsBase64) {
  EXPECT_EQ(decoded(of_bytes(R"("bytes")"), "\4\xff\0"s), R"({"b":"/wA="})");
}

// For Java's serializer "\4ab" are three bytes, for Python's they are "ab".
TEST(Avro, RefusesASchemaOfBytesAloneWhichSerializersWriteInTwoWays) {
  for (const std::string schema :
       {R"("bytes")", "bytes", R"({"type": "bytes"})",
        R"({"type": "bytes", "logicalType": "decimal", "precision": 9})"})
    expect_refused(schema, "\4ab", "two ways");
  EXPECT_EQ(decoded(R"(["null", "bytes"])", "\2\4ab"), R"("YWI=")");
}

TEST(Avro, WritesRecordsMapsArraysEnumsAndFixed) {
  EXPECT_EQ(
      decoded(R"({"type": "record", "name": "p.Payment", "fields": [
                         {"name": "id", "type": "string"},
                         {"name": "kind", "type": {"type": "enum", "name": "Kind",
                                                   "symbols": ["CARD", "CASH"]}},
                         {"name": "again", "type": "Kind"},
                         {"name": "f", "type": {"type": "fixed", "name": "F", "size": 2}},
                         {"name": "lines", "type": {"type": "array", "items": "int"}},
                         {"name": "tags", "type": {"type": "map", "values": "long"}}]})",
              "\4p1\2\0ab\4\2\4\1\2\6\0\2\2k\x0e\0"s),
      R"({"id":"p1","kind":"CASH","again":"CARD","f":"YWI=","lines":[1,2,3],"tags":{"k":7}})");
}

TEST(Avro, NamesTheBranchOnlyOfAUnionWithSeveral) {
  EXPECT_EQ(decoded(R"(["null", "long"])", "\0"s), "null");
  EXPECT_EQ(decoded(R"(["null", "long"])", "\2\x0e"), "7");
  EXPECT_EQ(decoded(R"(["null", "long", "string"])", "\0"s), "null");
  EXPECT_EQ(decoded(R"(["null", "long", "string"])", "\4\2x"), R"({"string":"x"})");
  EXPECT_EQ(decoded(R"(["string", {"type": "record", "name": "a.B", "fields": []}])", "\2"),
            R"({"a.B":{}})");
}

TEST(Avro, WritesADecimalWithAllItsDigits) {
  const auto decimal = [](int scale, const std::string& bytes) {
    const std::string json = decoded(
        of_bytes(R"({"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": )" +
                 std::to_string(scale) + "}"),
        std::string(1, static_cast<char>(2 * bytes.size())) + bytes);
    return json.substr(5, json.size() - 6);  // {"b":…}
  };
  EXPECT_EQ(decimal(2, "\x04\xd2"), R"("12.34")");
  EXPECT_EQ(decimal(2, "\xfb\x2e"), R"("-12.34")");
  EXPECT_EQ(decimal(2, "\xff"), R"("-0.01")");
  EXPECT_EQ(decimal(3, "\0"s), R"("0.000")");
  EXPECT_EQ(decimal(0, "\x80"), R"("-128")");
  EXPECT_EQ(decimal(0, "\x0f\xff\xff\xff\xff\xff\xff\xff\xff\xff"), R"("75557863725914323419135")");
}

TEST(Avro, FindsNamesOfReferencesAndOfTheOwnNamespace) {
  const std::vector<SchemaText::Reference> money{
      {"m.Money", R"({"type": "record", "name": "Money", "namespace": "m",
                      "fields": [{"name": "minor", "type": "long"}]})"}};
  EXPECT_EQ(
      decoded(R"({"type": "record", "name": "m.P",
                        "fields": [{"name": "a", "type": "Money"}, {"name": "b", "type": "m.Money"},
                                   {"name": "next", "type": ["null", "P"]}]})",
              "\2\4\2\6\4\0"s, money),
      R"({"a":{"minor":1},"b":{"minor":2},"next":{"a":{"minor":3},"b":{"minor":2},"next":null}})");
}

TEST(Avro, RefusesBytesThatDoNotFit) {
  expect_refused(R"("long")", "", "ends early");
  expect_refused(R"("long")", "\x80", "ends early");
  expect_refused(R"("long")", std::string(11, '\xff'), "too large");
  expect_refused(R"("int")", "\x80\x80\x80\x80\x20", "too large");
  expect_refused(R"("null")", "x", "left over");
  expect_refused(R"("boolean")", "\2", "neither");
  expect_refused(R"("string")", "\2\xff", "UTF-8");
  expect_refused(R"("string")", "\1", "too large");  // a negative length
  expect_refused(R"(["null"])", "\2", "index of a union");
  expect_refused(R"({"type": "enum", "name": "E", "symbols": ["A"]})", "\2", "index of an enum");
}

// Each of these ended avro-c, or would have.
TEST(Avro, IsBoundedByWhatItReadsAndNotByTheBytesOwnNumbers) {
  expect_refused(R"("string")", "\x80\x80\x80\x80\x80\x40", "ends early");  // 2^40 bytes
  const std::string most = "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  expect_refused(R"({"type": "array", "items": "null"})", most, "more than");
  expect_refused(R"({"type": "array", "items": {"type": "record", "name": "R", "fields": []}})",
                 most, "more than");
  const std::string least = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  expect_refused(R"({"type": "array", "items": "null"})", least, "too large");
  const std::string list = R"({"type": "record", "name": "N",
                               "fields": [{"name": "next", "type": ["null", "N"]}]})";
  expect_refused(list, std::string(1'000'000, '\2'), "nests too deep");
  expect_refused(R"({"type": "record", "name": "N", "fields": [{"name": "n", "type": "N"}]})", "",
                 "nests too deep");
  expect_refused(of_bytes(R"({"type": "bytes", "logicalType": "decimal", "precision": 9})"),
                 "\x90\x4e" + std::string(5000, '\7'), "128 bytes");
}

TEST(Avro, RefusesWhatIsNoSchema) {
  for (const std::string schema :
       {"", "{", "7", R"("payment")", R"({"type": "record", "name": "R"})", R"(["int", "int"])",
        R"(["int", ["long"]])", R"({"type": "fixed", "name": "F", "size": -1})",
        R"({"type": "enum", "name": "E", "symbols": ["A", "A"]})",
        R"({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"},
                                                      {"name": "a", "type": "int"}]})",
        R"({"type": "array"})"})
    expect_refused(schema, "", "no Avro schema");
  std::string deep = "\"int\"";
  for (int i = 0; i < 200; ++i) deep = R"({"type": "array", "items": )" + deep + "}";
  expect_refused(deep, "", "nest deeper");
}

}  // namespace
}  // namespace hapax::payload
