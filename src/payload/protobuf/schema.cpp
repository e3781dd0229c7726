#include "payload/protobuf/schema.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "payload/protobuf/imports.hpp"
#include "payload/protobuf/source.hpp"

namespace hapax::payload::protobuf {
namespace {

namespace pb = google::protobuf;

constexpr std::size_t kMaxText = std::size_t{4} << 20;  // bytes, with what it refers to
constexpr int kMaxElements = 50'000;                    // fields, messages, values of enums
constexpr std::size_t kMaxNames = std::size_t{64} << 20;
constexpr const char* kItself = "the schema";  // no file can be imported as this

[[noreturn]] void unusable(const std::string& why) {
  throw NotDecodable("the schema is no Protobuf schema: " + why);
}

class FirstProblem : public pb::DescriptorPool::ErrorCollector {
 public:
  void AddError(const std::string& file, const std::string& element, const pb::Message*,
                ErrorLocation, const std::string& message) override {
    if (!text) text = file + ": " + element + ": " + message;
  }
  std::optional<std::string> text;
};

// libprotobuf compares ranges ("reserved 7 to 9") with each other and with each field.
constexpr int kRange = 20;

// What libprotobuf will hold of a file. It keeps each name with all that the name is in.
class Extent {
 public:
  void add(const pb::FileDescriptorProto& file) {
    const std::size_t scope = file.package().size();
    add_all(file.extension(), scope);
    for (const auto& type : file.enum_type()) add_type(type, scope);
    for (const auto& type : file.message_type()) add_type(type, scope);
  }

  int elements() const { return elements_; }
  std::size_t names() const { return names_; }  // bytes

 private:
  template <class Element>
  std::size_t add_one(const Element& element, std::size_t scope) {
    const std::size_t name = scope + 1 + element.name().size();
    ++elements_;
    names_ += name;
    return name;
  }

  template <class Elements>
  void add_all(const Elements& elements, std::size_t scope) {
    for (const auto& element : elements) add_one(element, scope);
  }

  void add_type(const pb::EnumDescriptorProto& type, std::size_t scope) {
    add_one(type, scope);
    add_all(type.value(), scope);  // beside its enum
    elements_ += kRange * type.reserved_range_size();
  }

  void add_type(const pb::DescriptorProto& type, std::size_t scope) {
    const std::size_t name = add_one(type, scope);
    add_all(type.field(), name);
    add_all(type.extension(), name);
    add_all(type.oneof_decl(), name);
    elements_ += kRange * (type.reserved_range_size() + type.extension_range_size());
    for (const auto& nested : type.enum_type()) add_type(nested, name);
    for (const auto& nested : type.nested_type()) add_type(nested, name);
  }

  int elements_ = 0;
  std::size_t names_ = 0;
};

// Brings a schema and the files that it imports into a pool, each after those that it imports.
class Building {
 public:
  Building(const SchemaText& schema, pb::DescriptorPool& pool) : schema_(schema), pool_(pool) {
    std::size_t size = schema.text.size();
    for (const SchemaText::Reference& reference : schema.references) size += reference.text.size();
    if (size > kMaxText)
      unusable("it has more than " + std::to_string(kMaxText) + " bytes with its references");
  }

  const pb::FileDescriptor* whole() { return add(parse_source(schema_.text, kItself)); }

 private:
  const pb::FileDescriptor* add(const pb::FileDescriptorProto& file) {
    extent_.add(file);
    if (extent_.elements() > kMaxElements)
      unusable("it has more than " + std::to_string(kMaxElements) + " fields and types");
    if (extent_.names() > kMaxNames)
      unusable("it has full names of more than " + std::to_string(kMaxNames) + " bytes in all");
    for (const std::string& name : file.dependency())
      if (begun_.insert(name).second) add(imported(name, file.name()));
    FirstProblem problem;
    const pb::FileDescriptor* const built = pool_.BuildFileCollectingErrors(file, &problem);
    if (built == nullptr) unusable(problem.text.value_or("it cannot be built"));
    return built;
  }

  pb::FileDescriptorProto imported(const std::string& name, const std::string& by) const {
    if (auto file = library_file(name)) return *std::move(file);
    if (const std::string* const text = reference(name)) return parse_source(*text, name);
    if (const auto source = bundled_source(name)) return parse_source(*source, name);
    unusable(by + " imports " + name + ", which is none of its references in the registry");
  }

  // One that the schema names itself counts more than one that another reference names.
  const std::string* reference(const std::string& name) const {
    const SchemaText::Reference* found = nullptr;
    for (const SchemaText::Reference& reference : schema_.references) {
      if (reference.name != name) continue;
      if (found != nullptr && found->is_direct == reference.is_direct &&
          found->text != reference.text)
        unusable("it refers to two versions of " + name +
                 "; register it with a reference of its own to one of them");
      if (found == nullptr || reference.is_direct) found = &reference;
    }
    return found == nullptr ? nullptr : &found->text;
  }

  const SchemaText& schema_;
  pb::DescriptorPool& pool_;
  std::set<std::string> begun_;
  Extent extent_;
};

std::string path_text(const std::vector<int>& indexes) {
  std::string text;
  for (const int index : indexes) text += (text.empty() ? "" : ".") + std::to_string(index);
  return text;
}

// Some serializers count only the messages that are written in a message. Others, such as Python's,
// also count those that stand for map fields, in an order that a registry may change.
const pb::Descriptor* nested(const pb::Descriptor& in, int index) {
  std::vector<const pb::Descriptor*> written;
  for (int i = 0; i < in.nested_type_count(); ++i)
    if (!in.nested_type(i)->options().map_entry()) written.push_back(in.nested_type(i));
  const int count = static_cast<int>(written.size());
  const int maps = in.nested_type_count() - count;
  const int first = std::max(0, index - maps);
  const int last = std::min(index, count - 1);
  if (first > last) return nullptr;
  if (first < last)
    throw NotDecodable("the index " + std::to_string(index) + " can mean " +
                       written[static_cast<std::size_t>(first)]->full_name() + " and " +
                       written[static_cast<std::size_t>(last)]->full_name() + ", because " +
                       in.full_name() +
                       " has map fields, which only some serializers count; declare the message "
                       "outside of it");
  return written[static_cast<std::size_t>(first)];
}

}  // namespace

Schema::Schema(const SchemaText& schema) {
  file_ = Building(schema, pool_).whole();
  std::set<const pb::FileDescriptor*> seen{file_};
  for (std::vector<const pb::FileDescriptor*> open{file_}; !open.empty();) {
    const pb::FileDescriptor& file = *open.back();
    open.pop_back();
    for (int i = 0; i < file.message_type_count(); ++i) note_required(*file.message_type(i));
    for (int i = 0; i < file.dependency_count(); ++i)
      if (seen.insert(file.dependency(i)).second) open.push_back(file.dependency(i));
  }
}

void Schema::note_required(const pb::Descriptor& message) {
  for (int i = 0; i < message.field_count(); ++i)
    if (message.field(i)->is_required()) required_[&message].push_back(message.field(i));
  for (int i = 0; i < message.nested_type_count(); ++i) note_required(*message.nested_type(i));
}

const pb::Descriptor& Schema::message(const std::vector<int>& indexes) const {
  const pb::Descriptor* found =
      indexes[0] < file_->message_type_count() ? file_->message_type(indexes[0]) : nullptr;
  for (std::size_t i = 1; found != nullptr && i < indexes.size(); ++i)
    found = nested(*found, indexes[i]);
  if (found == nullptr)
    throw NotDecodable("the schema has no message with the index " + path_text(indexes));
  return *found;
}

const pb::FieldDescriptor* Schema::field(const pb::Descriptor& message, int number) const {
  const pb::FieldDescriptor* const own = message.FindFieldByNumber(number);
  if (own != nullptr || !message.IsExtensionNumber(number)) return own;
  return pool_.FindExtensionByNumber(&message, number);
}

const std::vector<const pb::FieldDescriptor*>* Schema::required(
    const pb::Descriptor& message) const {
  const auto found = required_.find(&message);
  return found == required_.end() ? nullptr : &found->second;
}

}  // namespace hapax::payload::protobuf
