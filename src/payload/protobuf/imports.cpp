#include "payload/protobuf/imports.hpp"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/api.pb.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/empty.pb.h>
#include <google/protobuf/field_mask.pb.h>
#include <google/protobuf/source_context.pb.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/type.pb.h>
#include <google/protobuf/wrappers.pb.h>

#include <array>
#include <utility>

namespace hapax::payload::protobuf {
namespace {

namespace pb = google::protobuf;

constexpr std::string_view kFolder = "google/protobuf/";

// By a message of each file, because the linker leaves out files that nothing names. libprotobuf's
// own registry cannot tell: a handler that is linked in may have brought files of its own into it.
const pb::FileDescriptor* of_library(std::string_view name) {
  if (!name.starts_with(kFolder)) return nullptr;
  const std::array<const pb::Descriptor*, 11> samples{
      pb::Any::descriptor(),       pb::Api::descriptor(),
      pb::Duration::descriptor(),  pb::Empty::descriptor(),
      pb::FieldMask::descriptor(), pb::FileDescriptorProto::descriptor(),
      pb::Struct::descriptor(),    pb::SourceContext::descriptor(),
      pb::Timestamp::descriptor(), pb::Type::descriptor(),
      pb::Int64Value::descriptor()};
  for (const pb::Descriptor* const sample : samples)
    if (sample->file()->name() == name) return sample->file();
  return nullptr;
}

constexpr std::string_view kTypes = "google/type/";

using Source = std::pair<std::string_view, std::string_view>;

// Of google/type/: what stands behind the package.
constexpr std::array kGoogleTypes = std::to_array<Source>({
    {"calendar_period.proto", R"(enum CalendarPeriod { CALENDAR_PERIOD_UNSPECIFIED = 0; DAY = 1;
        WEEK = 2; FORTNIGHT = 3; MONTH = 4; QUARTER = 5; HALF = 6; YEAR = 7; })"},
    {"color.proto", R"(import 'google/protobuf/wrappers.proto'; message Color { float red = 1;
        float green = 2; float blue = 3; google.protobuf.FloatValue alpha = 4; })"},
    {"date.proto", R"(message Date { int32 year = 1; int32 month = 2; int32 day = 3; })"},
    {"datetime.proto", R"(import 'google/protobuf/duration.proto'; message DateTime {
        int32 year = 1; int32 month = 2; int32 day = 3; int32 hours = 4; int32 minutes = 5;
        int32 seconds = 6; int32 nanos = 7;
        oneof time_offset { google.protobuf.Duration utc_offset = 8; TimeZone time_zone = 9; } }
        message TimeZone { string id = 1; string version = 2; })"},
    {"dayofweek.proto", R"(enum DayOfWeek { DAY_OF_WEEK_UNSPECIFIED = 0; MONDAY = 1; TUESDAY = 2;
        WEDNESDAY = 3; THURSDAY = 4; FRIDAY = 5; SATURDAY = 6; SUNDAY = 7; })"},
    {"decimal.proto", R"(message Decimal { string value = 1; })"},
    {"expr.proto", R"(message Expr { string expression = 1; string title = 2;
        string description = 3; string location = 4; })"},
    {"fraction.proto", R"(message Fraction { int64 numerator = 1; int64 denominator = 2; })"},
    {"interval.proto", R"(import 'google/protobuf/timestamp.proto'; message Interval {
        google.protobuf.Timestamp start_time = 1; google.protobuf.Timestamp end_time = 2; })"},
    {"latlng.proto", R"(message LatLng { double latitude = 1; double longitude = 2; })"},
    {"localized_text.proto",
     R"(message LocalizedText { string text = 1; string language_code = 2; })"},
    {"money.proto",
     R"(message Money { string currency_code = 1; int64 units = 2; int32 nanos = 3; })"},
    {"month.proto", R"(enum Month { MONTH_UNSPECIFIED = 0; JANUARY = 1; FEBRUARY = 2; MARCH = 3;
        APRIL = 4; MAY = 5; JUNE = 6; JULY = 7; AUGUST = 8; SEPTEMBER = 9; OCTOBER = 10;
        NOVEMBER = 11; DECEMBER = 12; })"},
    {"phone_number.proto", R"(message PhoneNumber {
        message ShortCode { string region_code = 1; string number = 2; }
        oneof kind { string e164_number = 1; ShortCode short_code = 2; } string extension = 3; })"},
    {"postal_address.proto", R"(message PostalAddress { int32 revision = 1; string region_code = 2;
        string language_code = 3; string postal_code = 4; string sorting_code = 5;
        string administrative_area = 6; string locality = 7; string sublocality = 8;
        repeated string address_lines = 9; repeated string recipients = 10;
        string organization = 11; })"},
    {"quaternion.proto",
     R"(message Quaternion { double x = 1; double y = 2; double z = 3; double w = 4; })"},
    {"timeofday.proto", R"(message TimeOfDay { int32 hours = 1; int32 minutes = 2;
        int32 seconds = 3; int32 nanos = 4; })"},
});

// Of Confluent. Options are not read, so of meta.proto the messages are enough.
constexpr std::array kConfluent = std::to_array<Source>({
    {"confluent/meta.proto", R"(syntax = 'proto3'; package confluent; message Meta {
        string doc = 1; map<string, string> params = 2; repeated string tags = 3;
        repeated Rule rules = 4; }
        message Rule { string name = 1; string doc = 2; string expr = 3; string sql = 4; })"},
    {"confluent/type/decimal.proto", R"(syntax = 'proto3'; package confluent.type;
        message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; })"},
    {"confluent/types/decimal.proto",
     R"(syntax = 'proto3'; import public 'confluent/type/decimal.proto';)"},
    {"confluent/type/variant.proto", R"(syntax = 'proto3'; package confluent.type;
        message Variant { bytes metadata = 1; bytes value = 2; })"},
});

}  // namespace

bool is_library_file(std::string_view name) { return of_library(name) != nullptr; }

std::optional<pb::FileDescriptorProto> library_file(const std::string& name) {
  const pb::FileDescriptor* const found = of_library(name);
  if (found == nullptr) return std::nullopt;
  pb::FileDescriptorProto file;
  found->CopyTo(&file);
  return file;
}

std::optional<std::string> bundled_source(std::string_view name) {
  for (const auto& [path, source] : kConfluent)
    if (name == path) return std::string(source);
  if (!name.starts_with(kTypes)) return std::nullopt;
  for (const auto& [file, source] : kGoogleTypes)
    if (name.substr(kTypes.size()) == file)
      return "syntax = 'proto3'; package google.type; " + std::string(source);
  return std::nullopt;
}

}  // namespace hapax::payload::protobuf
