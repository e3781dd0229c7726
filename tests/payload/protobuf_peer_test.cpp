// libprotobuf as the judge: of random messages that it wrote, it must read hapax's JSON as the
// same.
#include <google/protobuf/compiler/parser.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>

#include <limits>
#include <random>

#include "payload/protobuf/imports.hpp"
#include "payload/protobuf_case.hpp"

namespace hapax::payload::protobuf {
namespace {

namespace pb = google::protobuf;

constexpr const char* kEverything = R"(
syntax = "proto3";
import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto"; import "google/protobuf/struct.proto";
enum Color { NONE = 0; RED = 1; BLUE = -5; }
message M {
  double d = 1; float f = 2; int32 i32 = 3; int64 i64 = 4; uint32 u32 = 5; uint64 u64 = 6;
  sint32 s32 = 7; sint64 s64 = 8; fixed32 f32 = 9; fixed64 f64 = 10; sfixed32 sf32 = 11;
  sfixed64 sf64 = 12; bool b = 13; string s = 14; bytes by = 15; Color e = 16; M m = 17;
  repeated double rd = 21; repeated sint32 rs = 22; repeated bool rb = 23; repeated string rt = 24;
  repeated M rm = 25; repeated Color re = 26; repeated fixed64 unpacked = 27 [packed = false];
  map<string, string> ms = 31; map<int64, M> mm = 32; map<bool, Color> me = 33;
  map<sfixed32, bytes> mb = 34;
  optional int64 o64 = 41; optional string os = 42; optional Color oe = 43; optional bool ob = 44;
  oneof choice { int32 ci = 51; string cs = 52; M cm = 53; google.protobuf.NullValue cn = 54; }
  google.protobuf.Timestamp at = 61; google.protobuf.Duration took = 62;
  google.protobuf.Int64Value w64 = 63; google.protobuf.StringValue ws = 64;
  google.protobuf.DoubleValue wd = 65; google.protobuf.BytesValue wb = 66;
  google.protobuf.BoolValue wo = 67; google.protobuf.UInt32Value w32 = 68;
  google.protobuf.Struct st = 71; google.protobuf.ListValue lv = 72;
  repeated google.protobuf.Timestamp times = 73; map<string, google.protobuf.Value> values = 74;
}
)";

class RandomMessage {
 public:
  explicit RandomMessage(unsigned seed) : random_(seed) {}

  void fill(pb::Message& message, int level = 0) {
    const auto& type = *message.GetDescriptor();
    if (type.full_name() == "google.protobuf.Timestamp") return set_time(message, 0);
    if (type.full_name() == "google.protobuf.Duration") return set_time(message, -2'000'000);
    for (int i = 0; i < type.field_count(); ++i) {
      const pb::FieldDescriptor& field = *type.field(i);
      const bool is_deep = field.message_type() != nullptr && level > 3;
      const bool must = type.options().map_entry();
      if (!must && (is_deep || at_most(3) != 0)) continue;
      for (int n = field.is_repeated() && !field.is_map() ? at_most(3) : 1; n > 0; --n)
        set(message, field, level);
    }
    // A Value without a kind has no JSON of its own.
    if (type.full_name() == "google.protobuf.Value" && !is_set(message))
      message.GetReflection()->SetBool(&message, type.FindFieldByNumber(4), true);
  }

 private:
  int at_most(int most) { return std::uniform_int_distribution<int>(0, most)(random_); }

  template <class Number>
  Number number() {
    switch (at_most(5)) {
      case 0: return 0;
      case 1: return std::numeric_limits<Number>::max();
      case 2: return std::numeric_limits<Number>::lowest();
      case 3: return static_cast<Number>(at_most(1000));
      default: return static_cast<Number>(random_());
    }
  }

  std::string text() {
    const std::array<const char*, 5> texts{"", "a", "\"\\\n\x01\x7f", "Grüße €", "𝄞"};
    return texts[static_cast<std::size_t>(at_most(4))];
  }

  void set_time(pb::Message& message, std::int64_t least) {
    const auto& type = *message.GetDescriptor();
    const std::int64_t seconds = least + at_most(4'000'000);
    const int nanos =
        std::array{0, 1, 500'000'000, 1'000, 120'000'000}[static_cast<std::size_t>(at_most(4))];
    message.GetReflection()->SetInt64(&message, type.FindFieldByNumber(1), seconds);
    message.GetReflection()->SetInt32(&message, type.FindFieldByNumber(2),
                                      seconds < 0 ? -nanos : nanos);
  }

  static bool is_set(const pb::Message& message) {
    std::vector<const pb::FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    return !fields.empty();
  }

  void set(pb::Message& message, const pb::FieldDescriptor& field, int level) {
    const pb::Reflection& to = *message.GetReflection();
    const auto put = [&](auto one, auto many, auto value) {
      field.is_repeated() ? (to.*many)(&message, &field, value)
                          : (to.*one)(&message, &field, value);
    };
    using R = pb::Reflection;
    switch (field.cpp_type()) {
      case pb::FieldDescriptor::CPPTYPE_INT32:
        return put(&R::SetInt32, &R::AddInt32, number<std::int32_t>());
      case pb::FieldDescriptor::CPPTYPE_INT64:
        return put(&R::SetInt64, &R::AddInt64, number<std::int64_t>());
      case pb::FieldDescriptor::CPPTYPE_UINT32:
        return put(&R::SetUInt32, &R::AddUInt32, number<std::uint32_t>());
      case pb::FieldDescriptor::CPPTYPE_UINT64:
        return put(&R::SetUInt64, &R::AddUInt64, number<std::uint64_t>());
      case pb::FieldDescriptor::CPPTYPE_DOUBLE:
        return put(&R::SetDouble, &R::AddDouble, number<double>() / 7);
      case pb::FieldDescriptor::CPPTYPE_FLOAT:
        return put(&R::SetFloat, &R::AddFloat, number<float>() / 7);
      case pb::FieldDescriptor::CPPTYPE_BOOL: return put(&R::SetBool, &R::AddBool, at_most(1) == 1);
      case pb::FieldDescriptor::CPPTYPE_STRING: return put(&R::SetString, &R::AddString, text());
      case pb::FieldDescriptor::CPPTYPE_ENUM: {
        const auto& values = *field.enum_type();
        const bool is_known = values.value_count() == 1 || at_most(3) > 0;
        return put(&R::SetEnumValue, &R::AddEnumValue,
                   is_known ? values.value(at_most(values.value_count() - 1))->number() : 77);
      }
      case pb::FieldDescriptor::CPPTYPE_MESSAGE:
        return fill(field.is_repeated() ? *to.AddMessage(&message, &field)
                                        : *to.MutableMessage(&message, &field),
                    level + 1);
    }
  }

  std::mt19937_64 random_;
};

TEST(ProtobufPeer, ReadsTheJsonAsTheSameMessage) {
  pb::DescriptorPool pool;
  for (const char* const name : {"timestamp", "duration", "wrappers", "struct"})
    ASSERT_TRUE(pool.BuildFile(*library_file("google/protobuf/" + std::string(name) + ".proto")));
  pb::io::ArrayInputStream stream(kEverything, static_cast<int>(std::string(kEverything).size()));
  pb::io::Tokenizer tokenizer(&stream, nullptr);
  pb::FileDescriptorProto file;
  ASSERT_TRUE(pb::compiler::Parser().Parse(&tokenizer, &file));
  file.set_name("everything.proto");
  const pb::FileDescriptor* const built = pool.BuildFile(file);
  ASSERT_TRUE(built);
  pb::DynamicMessageFactory factory;
  const pb::Message& example = *factory.GetPrototype(built->message_type(0));
  const ProtobufDecoder decoder({"PROTOBUF", kEverything, {}});
  for (unsigned seed = 1; seed <= 300; ++seed) {
    const std::unique_ptr<pb::Message> written(example.New());
    RandomMessage(seed).fill(*written);
    const std::string bytes = written->SerializeAsString();
    const std::string json = decoder.decode({.indexes = {0}, .body = bytes});
    const std::unique_ptr<pb::Message> read(example.New());
    const auto status = pb::util::JsonStringToMessage(json, read.get());
    ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.ToString() << "\n" << json;
    std::string difference;
    pb::util::MessageDifferencer differencer;
    differencer.ReportDifferencesToString(&difference);
    ASSERT_TRUE(differencer.Compare(*written, *read))
        << "seed " << seed << ": " << difference << json;
  }
}

}  // namespace
}  // namespace hapax::payload::protobuf
