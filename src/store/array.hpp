// PostgreSQL arrays as parameters.
#pragma once

#include <string>

#include "store/transaction.hpp"

namespace hapax::store {

// A one-dimensional array literal. Each value is quoted, as one may be called "null".
template <class Values, class Projection>
Parameter array_of(const Values& values, Projection projection) {
  std::string text = "{";
  for (const auto& value : values) {
    if (text.size() > 1) text += ',';
    text += '"';
    const Parameter parameter(projection(value));
    for (const char letter : *parameter.text()) {
      if (letter == '"' || letter == '\\') text += '\\';
      text += letter;
    }
    text += '"';
  }
  return text + "}";
}

}  // namespace hapax::store
