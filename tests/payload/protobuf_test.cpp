// Which JSON the bytes of a Protobuf message become, and which bytes are refused.
#include "payload/protobuf_case.hpp"

namespace hapax::payload::protobuf {
namespace {

using namespace std::string_literals;

// Of a message with these fields.
std::string read_proto3(const std::string& fields, const std::string& bytes) {
  return decoded("syntax = 'proto3'; message M { " + fields + " }", bytes);
}

TEST(Protobuf, WritesEachScalarAsJson) {
  const std::string minus_one = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  EXPECT_EQ(read_proto3("int32 a = 1;", "\x08\x96\x01"), R"({"a":150})");
  EXPECT_EQ(read_proto3("int32 a = 1;", "\x08" + minus_one), R"({"a":-1})");
  EXPECT_EQ(read_proto3("int64 a = 1;", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
            R"({"a":9223372036854775807})");
  EXPECT_EQ(read_proto3("uint32 a = 1;", "\x08\xff\xff\xff\xff\x0f"), R"({"a":4294967295})");
  EXPECT_EQ(read_proto3("uint64 a = 1;", "\x08" + minus_one), R"({"a":18446744073709551615})");
  EXPECT_EQ(read_proto3("sint32 a = 1;", "\x08\x03"), R"({"a":-2})");
  EXPECT_EQ(read_proto3("sint64 a = 1;", "\x08" + minus_one), R"({"a":-9223372036854775808})");
  EXPECT_EQ(read_proto3("bool a = 1;", "\x08\x01"), R"({"a":true})");
  EXPECT_EQ(read_proto3("fixed32 a = 1;", "\x0d\xff\xff\xff\xff"), R"({"a":4294967295})");
  EXPECT_EQ(read_proto3("sfixed32 a = 1;", "\x0d\xff\xff\xff\xff"), R"({"a":-1})");
  EXPECT_EQ(read_proto3("fixed64 a = 1;", "\x09\1\0\0\0\0\0\0\0"s), R"({"a":1})");
  EXPECT_EQ(read_proto3("sfixed64 a = 1;", "\x09" + std::string(8, '\xff')), R"({"a":-1})");
  EXPECT_EQ(read_proto3("float a = 1;", "\x0d\xcd\xcc\xcc\x3d"), R"({"a":0.1})");
  EXPECT_EQ(read_proto3("double a = 1;", "\x09\x9a\x99\x99\x99\x99\x99\xb9\x3f"), R"({"a":0.1})");
  EXPECT_EQ(read_proto3("double a = 1;", "\x09\0\0\0\0\0\0\xf8\x7f"s), R"({"a":"NaN"})");
  EXPECT_EQ(read_proto3("float a = 1;", "\x0d\0\0\x80\xff"s), R"({"a":"-Infinity"})");
  EXPECT_EQ(read_proto3("string a = 1;", "\x0a\x03\"\n\x7f"), "{\"a\":\"\\\"\\n\x7f\"}");
  EXPECT_EQ(read_proto3("bytes a = 1;", "\x0a\2\xff\0"s), R"({"a":"/wA="})");
}

TEST(Protobuf, WritesListsMapsMessagesAndEnums) {
  EXPECT_EQ(read_proto3("repeated int32 a = 1;", "\x0a\3\1\2\3"), R"({"a":[1,2,3]})");
  EXPECT_EQ(read_proto3("repeated int32 a = 1;", "\x08\1\x0a\1\2\x08\3"), R"({"a":[1,2,3]})");
  EXPECT_EQ(read_proto3("repeated int32 a = 1 [packed = false];", "\x0a\2\1\2"), R"({"a":[1,2]})");
  EXPECT_EQ(read_proto3("repeated string a = 1; int32 b = 2;", "\x0a\1x\x10\7\x0a\0"s),
            R"({"a":["x",""],"b":7})");
  EXPECT_EQ(read_proto3("message N { bool c = 1; } N a = 1; repeated N b = 2;",
                        "\x12\0\x12\2\x08\1\x0a\0"s),
            R"({"a":{},"b":[{},{"c":true}]})");
  EXPECT_EQ(
      read_proto3("enum E { Z = 0; A = 1; } E a = 1; repeated E b = 2;", "\x08\1\x12\3\1\0\7"s),
      R"({"a":"A","b":["A","Z",7]})");
  EXPECT_EQ(read_proto3("map<string, int64> a = 1;", "\x0a\5\x0a\1b\x10\2\x0a\3\x0a\1a"),
            R"({"a":{"a":0,"b":2}})");
  EXPECT_EQ(read_proto3("message N {} map<int32, N> a = 1;", "\x0a\0\x0a\4\x08\2\x12\0"s),
            R"({"a":{"0":{},"2":{}}})");
  EXPECT_EQ(read_proto3("map<bool, bytes> a = 1;", "\x0a\2\x08\1"), R"({"a":{"true":""}})");
}

// To Protobuf 0 in such a field is nothing. So a producer that adds the field changes no
// fingerprint. A key that was never set is a missing key, and not "0" for all messages.
TEST(Protobuf, LeavesOutWhatIsNotThere) {
  EXPECT_EQ(read_proto3("int64 a = 1; string b = 2; E c = 3; enum E { Z = 0; } double d = 4;", ""),
            "{}");
  EXPECT_EQ(
      read_proto3("int64 a = 1; string b = 2; double d = 4;", "\x08\0\x12\0\x21\0\0\0\0\0\0\0\0"s),
      "{}");
  EXPECT_EQ(read_proto3("optional int64 a = 1; optional string b = 2;", "\x08\0\x12\0"s),
            R"({"a":0,"b":""})");
  EXPECT_EQ(read_proto3("oneof o { int64 a = 1; string b = 2; }", "\x08\0"s), R"({"a":0})");
  EXPECT_EQ(read_proto3("repeated int32 a = 1; map<string, string> b = 2;", "\x0a\0"s), "{}");
  EXPECT_EQ(
      decoded("message M { optional int32 a = 1 [default = 5]; optional int32 b = 2; }", "\x10\0"s),
      R"({"b":0})");
}

TEST(Protobuf, LetsTheLastOfSeveralValuesCountAndJoinsMessages) {
  EXPECT_EQ(read_proto3("int32 a = 1;", "\x08\1\x08\2"), R"({"a":2})");
  EXPECT_EQ(read_proto3("int32 a = 1;", "\x08\1\x08\0"s), "{}");
  EXPECT_EQ(read_proto3("message N { int32 a = 1; int32 b = 2; repeated int32 c = 3; } N n = 1;",
                        "\x0a\4\x08\1\x18\5\x0a\4\x10\2\x18\6"),
            R"({"n":{"a":1,"b":2,"c":[5,6]}})");
  EXPECT_EQ(read_proto3("map<string, int32> a = 1;", "\x0a\5\x0a\1k\x10\1\x0a\5\x0a\1k\x10\2"),
            R"({"a":{"k":2}})");
  const std::string oneof =
      "message N { int32 a = 1; int32 b = 2; } oneof o { N n = 1; int32 i = 2; }";
  EXPECT_EQ(read_proto3(oneof, "\x0a\2\x08\1\x10\7"), R"({"i":7})");
  EXPECT_EQ(read_proto3(oneof, "\x0a\2\x08\1\x10\7\x0a\2\x10\2"), R"({"n":{"b":2}})");
  EXPECT_EQ(read_proto3(oneof, "\x0a\2\x08\1\x0a\2\x10\2"), R"({"n":{"a":1,"b":2}})");
}

TEST(Protobuf, WritesWellKnownTypesAsTheirJson) {
  const auto known = [](const std::string& type, const std::string& bytes) {
    for (const char* const file :
         {"timestamp", "duration", "wrappers", "struct", "any", "field_mask"})
      if (const std::string text =
              decoded("syntax = 'proto3'; import 'google/protobuf/"s + file +
                          ".proto'; message M { google.protobuf." + type + " a = 1; }",
                      "\x0a" + std::string(1, static_cast<char>(bytes.size())) + bytes);
          text.find("is not defined") == std::string::npos)
        return text;
    return "! no file declares "s + type;
  };
  EXPECT_EQ(known("Timestamp", ""), R"({"a":"1970-01-01T00:00:00Z"})");
  EXPECT_EQ(known("Timestamp", "\x08\xa0\xc9\xfc\xd6\x06\x10\x80\xca\xb5\xee\x01"),
            R"({"a":"2026-10-26T10:00:00.500Z"})");
  EXPECT_EQ(known("Timestamp", "\x08\x80\x92\xb8\xc3\x98\xfe\xff\xff\xff\1\x10\1"),
            R"({"a":"0001-01-01T00:00:00.000000001Z"})");
  expect_refused(known("Timestamp", "\x08\xff\xff\xff\xff\xff\xff\xff\x7f"), "years 1 to 9999");
  expect_refused(known("Timestamp", "\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"), "years 1 to");
  EXPECT_EQ(known("Duration", "\x08\x01"), R"({"a":"1s"})");
  EXPECT_EQ(known("Duration", "\x10\x80\xb6\xca\x91\xfe\xff\xff\xff\xff\x01"),
            R"({"a":"-0.500s"})");
  expect_refused(known("Duration", "\x08\x01\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\1"),
                 "two signs");
  EXPECT_EQ(known("Int64Value", ""), R"({"a":0})");
  EXPECT_EQ(known("Int64Value", "\x08\7"), R"({"a":7})");
  EXPECT_EQ(known("StringValue", ""), R"({"a":""})");
  EXPECT_EQ(known("BoolValue", "\x08\1"), R"({"a":true})");
  EXPECT_EQ(known("Struct", ""), R"({"a":{}})");
  EXPECT_EQ(known("Struct", "\x0a\7\x0a\1k\x12\2\x08\0"s), R"({"a":{"k":null}})");
  EXPECT_EQ(known("ListValue", "\x0a\2\x20\1\x0a\2\x32\0\x0a\0"s), R"({"a":[true,[],null]})");
  EXPECT_EQ(known("Value", "\x1a\1x"), R"({"a":"x"})");
  EXPECT_EQ(known("Value", "\x2a\0"s), R"({"a":{}})");
  // JSON has no such number, and null is one value.
  expect_refused(known("Value", "\x11\0\0\0\0\0\0\xf8\x7f"s), "a google.protobuf.Value");
  expect_refused(known("Value", "\x11\0\0\0\0\0\0\xf0\xff"s), "a google.protobuf.Value");
  expect_refused(known("Value", "\x08\1"), "a google.protobuf.Value");
  EXPECT_EQ(known("Value", "\x11\0\0\0\0\0\0\xf0\x3f"s), R"({"a":1})");
  EXPECT_EQ(known("FieldMask", "\x0a\1x"), R"({"a":{"paths":["x"]}})");
  EXPECT_EQ(known("Any", "\x0a\1t\x12\1v"), R"({"a":{"type_url":"t","value":"dg=="}})");
}

TEST(Protobuf, ReadsGroupsExtensionsAndRequiredFields) {
  const std::string schema =
      "syntax = 'proto2'; package p; message M { optional group Inner = 1 { optional int32 a = 2;"
      " optional Inner inner = 3; } extensions 100 to 200; optional int32 z = 4; }"
      " extend M { optional string note = 100; }";
  EXPECT_EQ(decoded(schema, "\x0b\x10\7\x0c"), R"({"inner":{"a":7}})");
  EXPECT_EQ(decoded(schema, "\xa2\6\1x"), R"({"[p.note]":"x"})");
  expect_refused(decoded(schema, "\xa8\6\1"), "p.M has no field 101");
  expect_refused(decoded(schema, "\x0b\x10\7"), "ends early");
  expect_refused(decoded(schema, "\x0b\x14"), "has not begun");
  expect_refused(decoded(schema, "\x0c"), "kind that there is not");
  const std::string required = "message M { required int32 id = 1; optional M m = 2; }";
  EXPECT_EQ(decoded(required, "\x08\0"s), R"({"id":0})");
  expect_refused(decoded(required, ""), "the required field M.id is missing");
  expect_refused(decoded(required, "\x08\1\x12\0"s), "the required field M.id is missing");
}

// What the schema does not hold would be no part of the fingerprint, or another value.
TEST(Protobuf, RefusesBytesThatDoNotFit) {
  expect_refused(read_proto3("int32 a = 1;", "\x10\1"), "M has no field 2");
  expect_refused(read_proto3("int32 a = 1;", "\x0a\1x"), "M.a is written as another type");
  expect_refused(read_proto3("string a = 1;", "\x08\1"), "M.a is written as another type");
  expect_refused(read_proto3("int32 a = 1;", "\x08\x80\x80\x80\x80\x08"),
                 "M.a has a number of more than");
  expect_refused(read_proto3("uint32 a = 1;", "\x08\x80\x80\x80\x80\x10"),
                 "M.a has a number that is too");
  expect_refused(read_proto3("bool a = 1;", "\x08\2"), "M.a has a number that is too");
  expect_refused(read_proto3("int32 a = 1;", "\x08"), "ends early");
  expect_refused(read_proto3("int32 a = 1;", "\x08" + std::string(11, '\xff')),
                 "more than 64 bits");
  expect_refused(read_proto3("string a = 1;", "\x0a\2x"), "ends early");
  expect_refused(read_proto3("fixed32 a = 1;", "\x0d\0\0"s), "ends early");
  expect_refused(read_proto3("repeated fixed32 a = 1;", "\x0a\3\0\0\0"s), "ends early");
  expect_refused(read_proto3("string a = 1;", "\x0a\1\xff"), "UTF-8");
  expect_refused(read_proto3("map<string, int32> a = 1;", "\x0a\3\x0a\1\xff"), "UTF-8");
  expect_refused(read_proto3("map<string, int32> a = 1;", "\x0a\2\x18\1"), "has no field 3");
  expect_refused(read_proto3("int32 a = 1;", "\1"), "a number that there is not");
  expect_refused(read_proto3("int32 a = 1;", "\x0f"), "kind that there is not");
}

TEST(Protobuf, IsBoundedByWhatItReadsAndNotByTheBytesOwnNumbers) {
  expect_refused(read_proto3("bytes a = 1;", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
                 "ends early");
  const std::string many = "repeated E a = 1; enum E { " + std::string(20'000, 'Z') + " = 0; }";
  expect_refused(read_proto3(many, "\x0a\x80\x80\x40" + std::string(1 << 20, '\0')), "more than");
  std::string nested;
  for (int i = 0; i < 300; ++i) {
    std::string length(1, static_cast<char>(0x80 | (nested.size() & 0x7f)));
    length += static_cast<char>(nested.size() >> 7);
    nested.insert(0, "\x0a" + length);
  }
  expect_refused(read_proto3("M a = 1;", nested), "nests too deep");
  expect_refused(decoded("message M { optional group G = 1 { optional G g = 1; } }",
                         std::string(1'000'000, '\x0b')),
                 "nests too deep");
  // What libprotobuf holds in memory for these is 400 times as large.
  std::string fields;
  for (int i = 1; i <= 1000; ++i)
    fields += "string f" + std::to_string(i) + " = " + std::to_string(i) + ";";
  std::string empty;
  for (int i = 0; i < 100'000; ++i) empty += "\x0a\0"s;
  const std::string text = read_proto3("repeated N n = 1; message N { " + fields + " }", empty);
  EXPECT_EQ(text.size(), R"({"n":[]})"s.size() + 100'000 * 3 - 1);
}

// Each level holds a copy of all that is below it, if its message comes in two parts.
TEST(Protobuf, JoinsOnlySoManyBytes) {
  const auto field = [](char tag, const std::string& bytes) {
    std::string length;
    for (std::size_t rest = bytes.size(); length.empty() || rest > 0; rest >>= 7)
      length += static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
    return tag + length + bytes;
  };
  const auto joined = [&](std::size_t levels, std::size_t size) {
    std::string body = field('\x12', std::string(size, 'x'));
    for (std::size_t i = 0; i < levels; ++i) body = field('\x0a', body) + field('\x0a', "");
    return read_proto3("M a = 1; string s = 2;", body);
  };
  expect_refused(joined(255, 100'000), "joins more than");
  EXPECT_EQ(joined(4, 5'000'000).size(),
            5'000'000 + R"({"s":""})"s.size() + 4 * R"({"a":})"s.size());
  EXPECT_TRUE(joined(255, 1000).starts_with(R"({"a":)"));
}

// A list of messages in each message is as deep as Message::json() reads.
TEST(Protobuf, NestsAsDeepAsJsonIsRead) {
  std::string nested;
  for (std::size_t i = 0; i + 1 < kMaxJsonDepth / 2; ++i) {
    std::string length(1, static_cast<char>(0x80 | (nested.size() & 0x7f)));
    length += static_cast<char>(nested.size() >> 7);
    nested.insert(0, "\x0a" + length);
  }
  Message::Parts parts;
  const std::string text = read_proto3("repeated M a = 1;", nested);
  parts.payload = text;
  EXPECT_NO_THROW(Message(parts).json()) << text;
}

}  // namespace
}  // namespace hapax::payload::protobuf
