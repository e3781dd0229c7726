// Whether all of an HTTP request has come, and whether it is too large: before any of it is parsed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hapax::observe {

struct RequestSize {
  bool whole = false;
  std::string refusal = {};  // the answer to a request whose body has no size or too much of it
};

// `most_body` of 0: bodies are not read, so a request is whole with its head. Thread safety: pure.
RequestSize size_of(std::string_view request, std::size_t most_head, std::size_t most_body);

}  // namespace hapax::observe
