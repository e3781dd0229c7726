#include "kafka/provenance.hpp"

#include <charconv>

namespace hapax::kafka {
namespace {

constexpr std::string_view kPrefix = "hapax/1 ";

// Takes "name=value" and the space behind it off the front; false if it does not stand there.
bool take(std::string_view& text, std::string_view name, std::string_view& value) {
  if (!text.starts_with(name) || text.size() <= name.size() || text[name.size()] != '=')
    return false;
  text.remove_prefix(name.size() + 1);
  const std::size_t end = text.find(' ');
  value = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return true;
}

template <class Number>
bool read(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string Provenance::text() const {
  return std::string(kPrefix) + "store=" + store_id + " cluster=" + cluster_id +
         " epoch=" + std::to_string(epoch) + (wal.empty() ? "" : " wal=" + wal) +
         (first > 0 ? " first=" + std::to_string(first) : "");
}

std::optional<Provenance> Provenance::parse(std::string_view text) {
  if (!text.starts_with(kPrefix)) return std::nullopt;
  text.remove_prefix(kPrefix.size());
  std::string_view store, cluster, epoch;
  if (!take(text, "store", store) || !take(text, "cluster", cluster) || !take(text, "epoch", epoch))
    return std::nullopt;
  std::string_view wal;
  if (text.starts_with("wal=") && (!take(text, "wal", wal) || wal.empty())) return std::nullopt;
  Provenance provenance{std::string(store), std::string(cluster), 0, 0, std::string(wal)};
  std::string_view first;
  if (!text.empty() && (!take(text, "first", first) || !text.empty() ||
                        !read(first, provenance.first) || provenance.first < 1))
    return std::nullopt;
  if (!read(epoch, provenance.epoch)) return std::nullopt;
  return provenance;
}

}  // namespace hapax::kafka
