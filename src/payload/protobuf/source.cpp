#include "payload/protobuf/source.hpp"

#include <google/protobuf/compiler/parser.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "key/siv.hpp"
#include "payload/decoder.hpp"

namespace hapax::payload::protobuf {
namespace {

namespace pb = google::protobuf;

constexpr int kMaxBraces = 100;  // of messages in messages, as they are written
constexpr int kMaxTokens = 500'000;
constexpr std::size_t kMaxCopied = std::size_t{4} << 20;  // bytes

[[noreturn]] void no_schema(const std::string& why) {
  throw NotDecodable("the schema is no Protobuf schema: " + why);
}

// Keeps the first error; those after it often follow from it.
class FirstError : public pb::io::ErrorCollector {
 public:
  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (!text) text = std::to_string(line + 1) + ":" + std::to_string(column + 1) + ": " + message;
  }
  std::optional<std::string> text;
};

pb::io::ArrayInputStream stream_of(const std::string& text) {
  if (text.size() > std::numeric_limits<int>::max()) no_schema("it is too large");
  return {text.data(), static_cast<int>(text.size())};
}

// The parser copies the options behind "extensions 4, 6 to 8" into each of these ranges.
class ExtensionOptions {
 public:
  // `depth`: braces that are open behind the token.
  void add(const std::string& token, int depth) {
    constexpr std::size_t kOfEach = 16;  // a token of one byte is kept as more
    for (const Copied& one : open_) copied_ += one.times * (kOfEach + token.size());
    if (copied_ > kMaxCopied) no_schema("it has too many options for its extensions");
    while (!open_.empty() && ends(token, depth)) open_.pop_back();
    if (token == "[" && in_ranges_ && commas_ > 0) open_.push_back({commas_, depth});
    if (token == "," && in_ranges_) ++commas_;
    in_ranges_ = token == "extensions" || (in_ranges_ && is_of_range(token));
    if (token == "extensions") commas_ = 0;
  }

 private:
  struct Copied {
    std::size_t times = 0;
    int depth = 0;
  };

  static bool is_of_range(const std::string& token) {
    return token == "," || token == "to" || token == "max" || (token[0] >= '0' && token[0] <= '9');
  }

  bool ends(const std::string& token, int depth) const {
    return depth < open_.back().depth || (token == ";" && depth == open_.back().depth);
  }

  bool in_ranges_ = false;  // behind "extensions", and before the options
  std::size_t commas_ = 0;
  std::vector<Copied> open_;
  std::size_t copied_ = 0;
};

// What the parser does not bound: it recurses for each brace that opens, and keeps each token.
void check_bounds(const std::string& text) {
  pb::io::ArrayInputStream stream = stream_of(text);
  FirstError ignored;  // the parser reports them
  pb::io::Tokenizer tokenizer(&stream, &ignored);
  ExtensionOptions options;
  int depth = 0;
  for (int count = 1; tokenizer.Next(); ++count) {
    if (count > kMaxTokens)
      no_schema("it has more than " + std::to_string(kMaxTokens) + " words and signs");
    const std::string& token = tokenizer.current().text;
    if (token == "{" && ++depth > kMaxBraces)
      no_schema("messages nest deeper than " + std::to_string(kMaxBraces) + " levels");
    if (token == "}") depth = std::max(0, depth - 1);
    options.add(token, depth);
  }
}

pb::FileDescriptorProto parse_text(const std::string& text) {
  check_bounds(text);
  pb::io::ArrayInputStream stream = stream_of(text);
  FirstError error;
  pb::io::Tokenizer tokenizer(&stream, &error);
  pb::compiler::Parser parser;
  parser.RecordErrorsTo(&error);
  pb::FileDescriptorProto file;
  const pb::LogSilencer silencer;  // it would print that a file without "syntax" is proto2
  if (!parser.Parse(&tokenizer, &file) || error.text)
    no_schema(error.text.value_or("it cannot be parsed"));
  return file;
}

// Source always has characters that base64 has not.
std::optional<pb::FileDescriptorProto> parse_descriptor(std::string text) {
  while (text.ends_with('=')) text.pop_back();
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  const auto bytes = key::bytes_of_base64url(text);
  if (!bytes) return std::nullopt;
  pb::FileDescriptorProto file;
  if (!file.ParseFromString(*bytes)) no_schema("it is base64, but of no FileDescriptorProto");
  return file;
}

// The only options that change bytes, or what a schema may hold. All others go: newer ones that
// libprotobuf does not know, and those that other files declare, such as (buf.validate.field).
bool is_needed(const pb::UninterpretedOption& option) {
  if (option.name_size() != 1 || option.name(0).is_extension()) return false;
  const std::string& name = option.name(0).name_part();
  return name == "packed" || name == "allow_alias" || name == "message_set_wire_format";
}

template <class Element>
void drop_options(Element& element) {
  if (!element.has_options()) return;
  auto& options = *element.mutable_options()->mutable_uninterpreted_option();
  pb::RepeatedPtrField<pb::UninterpretedOption> needed;
  for (pb::UninterpretedOption& option : options)
    if (is_needed(option)) *needed.Add() = std::move(option);
  options.Swap(&needed);
}

void clean(pb::EnumDescriptorProto& type) {
  drop_options(type);
  for (auto& value : *type.mutable_value()) drop_options(value);
}

void clean(pb::DescriptorProto& type) {
  drop_options(type);
  for (auto& field : *type.mutable_field()) drop_options(field);
  for (auto& field : *type.mutable_extension()) drop_options(field);
  for (auto& oneof : *type.mutable_oneof_decl()) drop_options(oneof);
  for (auto& range : *type.mutable_extension_range()) drop_options(range);
  for (auto& nested : *type.mutable_enum_type()) clean(nested);
  for (auto& nested : *type.mutable_nested_type()) clean(nested);
}

void clean(pb::FileDescriptorProto& file) {
  drop_options(file);
  file.clear_source_code_info();
  file.clear_service();  // of gRPC
  for (auto& field : *file.mutable_extension()) drop_options(field);
  for (auto& type : *file.mutable_enum_type()) clean(type);
  for (auto& type : *file.mutable_message_type()) clean(type);
}

}  // namespace

pb::FileDescriptorProto parse_source(const std::string& text, const std::string& name) {
  auto file = parse_descriptor(text);
  if (!file) file = parse_text(text);
  clean(*file);
  file->set_name(name);
  return *std::move(file);
}

}  // namespace hapax::payload::protobuf
