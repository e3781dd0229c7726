#include "testing/drawn.hpp"

#include <algorithm>
#include <vector>

namespace hapax::testing {
namespace {

using nlohmann::json;
using Places = std::map<Drawn, std::vector<json>>;

std::set<Drawn> drawn_values(const Tables& tables) {
  std::set<Drawn> values;
  for (const auto& [name, table] : tables)
    for (const auto& [column, source] : table.drawn)
      for (const store::TableRow& row : table.rows)
        if (const auto found = row.find(column); found != row.end() && found->second)
          values.emplace(source, *found->second);
  return values;
}

Roles without_roles(const std::set<Drawn>& before, const Tables& tables) {
  Roles roles;
  for (const Drawn& value : drawn_values(tables))
    if (!before.contains(value)) roles.emplace(value, 0);
  return roles;
}

// Each new value's places: table, column, and the row with the roles so far.
Places places_of(const Tables& tables, const Roles& roles, const Columns& without) {
  Places places;
  if (roles.empty()) return places;
  for (const auto& [name, table] : tables)
    for (const store::TableRow& row : table.rows)
      for (const auto& [column, source] : table.drawn) {
        const auto found = row.find(column);
        if (found == row.end() || !found->second || without.contains(name + "." + column)) continue;
        const Drawn value(source, *found->second);
        if (roles.contains(value))
          places[value].push_back({name, column, comparable(name, table, row, roles, without)});
      }
  return places;
}

int count_roles(const TwoRoles& roles) {
  std::set<int> different;
  for (const Roles* side : {&roles.one, &roles.other})
    for (const auto& [value, role] : *side) different.insert(role);
  return static_cast<int>(different.size());
}

// Pairs of new values, one to one.
class Pairs {
 public:
  explicit Pairs(const TwoRoles& roles) : roles_(roles) {}

  bool match(const json& one, const json& other) {
    if (one.type() != other.type() || one.size() != other.size()) return false;
    if (one.is_object()) {
      for (const auto& [name, value] : one.items())
        if (!other.contains(name) || !match(value, other[name])) return false;
      return true;
    }
    if (one.is_array())
      return std::equal(one.begin(), one.end(), other.begin(),
                        [&](const json& a, const json& b) { return match(a, b); });
    return pair(text(one), text(other)) || one == other;
  }

 private:
  static std::string text(const json& leaf) {
    return leaf.is_string() ? leaf.get<std::string>() : leaf.dump();
  }

  bool pair(const std::string& one, const std::string& other) {
    for (const auto& [value, role] : roles_.one) {
      if (value.second != one) continue;
      const Drawn partner(value.first, other);
      const auto found = roles_.other.find(partner);
      if (found == roles_.other.end() || found->second != role) continue;
      const auto forth = forth_.find(value);
      const auto back = back_.find(partner);
      if (forth == forth_.end() && back == back_.end()) {
        forth_[value] = partner;
        back_[partner] = value;
        return true;
      }
      if (forth != forth_.end() && forth->second == partner) return true;
    }
    return false;
  }

  const TwoRoles& roles_;
  std::map<Drawn, Drawn> forth_, back_;
};

}  // namespace

// All begin alike. Each round tells apart what has other places, until a round tells nothing more.
TwoRoles roles_of_new(const Tables& before, const Tables& one, const Tables& other,
                      const Columns& without) {
  const std::set<Drawn> old = drawn_values(before);
  TwoRoles roles{without_roles(old, one), without_roles(old, other)};
  std::map<json, int> known;
  for (int count = 0; count_roles(roles) > count;) {
    count = count_roles(roles);
    const auto refine = [&](const Tables& tables, Roles& side) {
      Places places = places_of(tables, side, without);
      Roles refined;
      for (const auto& [value, role] : side) {
        std::ranges::sort(places[value]);
        const json description = {value.first, role, places[value]};
        const int next = static_cast<int>(known.size()) + 1;
        refined[value] = known.try_emplace(description, next).first->second;
      }
      side = std::move(refined);
    };
    refine(one, roles.one);
    refine(other, roles.other);
  }
  return roles;
}

json comparable(const std::string& name, const store::TableRows& table, const store::TableRow& row,
                const Roles& roles, const Columns& without) {
  json values = json::object();
  for (const auto& [column, text] : row) {
    if (without.contains(name + "." + column)) continue;
    if (!text) {
      values[column] = nullptr;
      continue;
    }
    if (table.times.contains(column)) continue;
    const auto source = table.drawn.find(column);
    const auto role =
        source == table.drawn.end() ? roles.end() : roles.find(Drawn(source->second, *text));
    if (role == roles.end())
      values[column] = *text;
    else
      values[column] = {{"drawn", role->second}};
  }
  return values;
}

bool same_but_for_new(const json& one, const json& other, const TwoRoles& roles) {
  return Pairs(roles).match(one, other);
}

}  // namespace hapax::testing
