// What statements return that make an object of each row: one column of JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "hapax/rows.hpp"

namespace hapax::store {

// `Json`: nlohmann::json, or ordered_json to keep the columns' order.
template <class Json>
Json json_of_rows(const Rows& rows) {
  Json list = Json::array();
  for (const Row row : rows) list.push_back(row[0].as<Json>());
  return list;
}

}  // namespace hapax::store
