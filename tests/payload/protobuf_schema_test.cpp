// Which schemas a Protobuf payload can be read by: their text, their imports, the message in them.
#include <google/protobuf/descriptor.pb.h>

#include "key/base64.hpp"
#include "payload/protobuf_case.hpp"

namespace hapax::payload::protobuf {
namespace {

using namespace std::string_literals;
using References = std::vector<SchemaText::Reference>;

const std::string kMoney = "syntax = 'proto3'; package m; message Money { int64 minor = 1; }";
const std::string kPayment =
    "syntax = 'proto3'; import 'money.proto'; message P { m.Money amount = 1; }";

TEST(ProtobufSchema, FindsTheMessageThatTheIndexesName) {
  const std::string schema =
      "syntax = 'proto3'; message A { int32 a = 1; } message B { message C { int32 c = 1;"
      " message D { int32 d = 1; } } message E { int32 e = 1; } }";
  EXPECT_EQ(decoded(schema, "\x08\1", {0}), R"({"a":1})");
  EXPECT_EQ(decoded(schema, "\x08\1", {1, 1}), R"({"e":1})");
  EXPECT_EQ(decoded(schema, "\x08\1", {1, 0, 0}), R"({"d":1})");
  expect_refused(decoded(schema, "\x08\1", {2}), "no message with the index 2");
  expect_refused(decoded(schema, "\x08\1", {1, 2}), "no message with the index 1.2");
  expect_refused(decoded(schema, "\x08\1", {0, 0}), "no message with the index 0.0");
}

// Python's serializer counts the message that stands for a map field, and others do not.
TEST(ProtobufSchema, TakesNoIndexThatSerializersCountDifferently) {
  const std::string one =
      "message M { map<string, string> m = 1; message A { optional int32 a = 1; } }";
  EXPECT_EQ(decoded(one, "\x08\1", {0, 0}), R"({"a":1})");
  EXPECT_EQ(decoded(one, "\x08\1", {0, 1}), R"({"a":1})");
  expect_refused(decoded(one, "\x08\1", {0, 2}), "no message with the index 0.2");
  const std::string two =
      "message M { map<string, string> m = 1; message A { optional int32 a = 1; }"
      " message B { optional int32 b = 1; } }";
  EXPECT_EQ(decoded(two, "\x08\1", {0, 0}), R"({"a":1})");
  expect_refused(decoded(two, "\x08\1", {0, 1}), "can mean M.A and M.B");
  EXPECT_EQ(decoded(two, "\x08\1", {0, 2}), R"({"b":1})");
}

TEST(ProtobufSchema, FindsImportsAmongReferencesAndKnownFiles) {
  EXPECT_EQ(decoded(kPayment, "\x0a\2\x08\7", {0}, {{"money.proto", kMoney}}),
            R"({"amount":{"minor":7}})");
  expect_refused(decoded(kPayment, "", {0}, {{"other.proto", kMoney}}),
                 "imports money.proto, which is none of its references");
  EXPECT_EQ(decoded("syntax = 'proto3'; import 'google/type/money.proto';"
                    " import 'confluent/types/decimal.proto';"
                    " message P { google.type.Money m = 1; confluent.type.Decimal d = 2; }",
                    "\x0a\5\x0a\3EUR\x12\2\x18\2"),
            R"({"m":{"currency_code":"EUR"},"d":{"scale":2}})");
  expect_refused(decoded("syntax = 'proto3'; import 'a.proto'; message P {}", "", {0},
                         {{"a.proto", "syntax = 'proto3'; import 'b.proto';"},
                          {"b.proto", "syntax = 'proto3'; import 'a.proto';"}}),
                 "a.proto");
}

// libprotobuf's file is the one whose JSON is written in a way of its own.
TEST(ProtobufSchema, TakesNoReferenceForAFileOfLibprotobuf) {
  const std::string other =
      "syntax = 'proto3'; package google.protobuf; message Timestamp {"
      " string text = 1; }";
  const std::string schema =
      "syntax = 'proto3'; import 'google/protobuf/timestamp.proto';"
      " message P { google.protobuf.Timestamp at = 1; }";
  EXPECT_EQ(decoded(schema, "\x0a\2\x08\1", {0}, {{"google/protobuf/timestamp.proto", other}}),
            R"({"at":"1970-01-01T00:00:01Z"})");
  EXPECT_EQ(decoded("syntax = 'proto3'; import 'mine.proto';"
                    " message P { google.protobuf.Timestamp at = 1; }",
                    "\x0a\3\x0a\1x", {0}, {{"mine.proto", other}}),
            R"({"at":{"text":"x"}})");
}

TEST(ProtobufSchema, PrefersTheVersionThatTheSchemaItselfNames) {
  const std::string newer = "syntax = 'proto3'; package m; message Money { int64 cents = 1; }";
  const std::string order = "syntax = 'proto3'; import 'money.proto'; message O { m.Money a = 1; }";
  const References both{{"money.proto", kMoney}, {"order.proto", order}};
  References direct = both;
  direct.push_back({"money.proto", newer, true});
  EXPECT_EQ(decoded(kPayment, "\x0a\2\x08\7", {0}, direct), R"({"amount":{"cents":7}})");
  References unclear = both;
  unclear.push_back({"money.proto", newer});
  expect_refused(decoded(kPayment, "\x0a\2\x08\7", {0}, unclear), "two versions of money.proto");
}

TEST(ProtobufSchema, IgnoresOptionsAndFilesThatOnlyDeclareThem) {
  EXPECT_EQ(decoded("syntax = 'proto3'; import 'confluent/meta.proto';"
                    " option (confluent.file_meta).doc = 'x';"
                    " message P { option (confluent.message_meta) = {tags: ['a']};"
                    " int64 id = 1 [(buf.validate.field).int64.gt = 0, debug_redact = true,"
                    " (confluent.field_meta) = {tags: ['PII']}, json_name = 'ID']; }"
                    " service S { rpc Get(P) returns (P) { option (x) = {a: 1}; } }",
                    "\x08\1"),
            R"({"id":1})");
  EXPECT_EQ(decoded("message P { enum E { option allow_alias = true; A = 1; B = 1; }"
                    " optional E e = 1; }",
                    "\x08\1"),
            R"({"e":"A"})");
}

// As Confluent's serializer for Python registers a schema.
TEST(ProtobufSchema, ReadsADescriptorInBase64) {
  google::protobuf::FileDescriptorProto file;
  file.set_syntax("proto3");
  auto& message = *file.add_message_type();
  message.set_name("P");
  auto& field = *message.add_field();
  field.set_name("id");
  field.set_number(1);
  field.set_type(google::protobuf::FieldDescriptorProto::TYPE_STRING);
  EXPECT_EQ(decoded(key::base64(file.SerializeAsString()), "\x0a\1x"), R"({"id":"x"})");
  file.add_dependency("money.proto");
  field.set_type(google::protobuf::FieldDescriptorProto::TYPE_MESSAGE);
  field.set_type_name(".m.Money");
  EXPECT_EQ(decoded(key::base64(file.SerializeAsString()), "\x0a\2\x08\1", {0},
                    {{"money.proto", kMoney}}),
            R"({"id":{"minor":1}})");
  expect_refused(decoded("AAAA", ""), "of no FileDescriptorProto");
}

TEST(ProtobufSchema, RefusesWhatIsNoSchema) {
  expect_refused(decoded("message", ""), "no Protobuf schema");
  expect_refused(decoded("{", ""), "no Protobuf schema: 1:1");
  expect_refused(decoded("syntax = 'proto3';", ""), "no message with the index 0");
  expect_refused(decoded("syntax = 'proto3'; message P { Q q = 1; }", ""), "\"Q\" is not defined");
  expect_refused(decoded("syntax = 'proto3'; message P { int32 a = 1; int32 b = 1; }", ""),
                 "number 1");
  expect_refused(decoded("edition = '2023'; message P {}", ""), "no Protobuf schema: 1:1");
  expect_refused(decoded(R"({"type": "record"})", ""), "no Protobuf schema");
}

TEST(ProtobufSchema, IsBounded) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "message M { /*}*/ ";
  expect_refused(decoded(deep, ""), "nest deeper than 100");
  std::string many = "message M {}";
  for (int i = 0; i < 50'000; ++i) many += "message M" + std::to_string(i) + "{}";
  expect_refused(decoded(many, ""), "more than 50000");
  std::string ranges = "message M { reserved 1";
  for (int i = 1; i < 3'000; ++i) ranges += "," + std::to_string(2 * i + 1);
  expect_refused(decoded(ranges + "; }", ""), "more than 50000");
  // libprotobuf keeps each name with all that it is in.
  std::string fields;
  for (int i = 1; i <= 5'000; ++i)
    fields += "string f" + std::to_string(i) + " = " + std::to_string(i) + ";";
  const std::string proto3 = "syntax = 'proto3'; ";
  const std::string name(20'000, 'N');
  expect_refused(decoded(proto3 + "message " + name + "{" + fields + "}", ""),
                 "names of more than");
  EXPECT_EQ(decoded(proto3 + "message M {" + fields + "}", ""), "{}");
  // Its parser copies the options into each range.
  const auto extensions = [](int count, const std::string& options) {
    std::string text = "message M { extensions 1";
    for (int i = 1; i < count; ++i) text += "," + std::to_string(2 * i + 1);
    return text + " [" + options + "]; }";
  };
  std::string options = "(a) = {b: [1]; extensions: 1}";
  for (int i = 0; i < 1'000; ++i) options += ", (a) = 1";
  expect_refused(decoded(extensions(1'000, options), ""), "options for its extensions");
  EXPECT_EQ(decoded(extensions(1, options), ""), "{}");
  EXPECT_EQ(decoded(extensions(100, "(a) = 1"), ""), "{}");
  expect_refused(decoded("message M {" + std::string(500'001, ';') + "}", ""),
                 "more than 500000 words");
  expect_refused(decoded("//" + std::string(4 << 20, 'x'), ""), "more than 4194304 bytes");
}

}  // namespace
}  // namespace hapax::payload::protobuf
