// Refusals in the format of RFC 9457: application/problem+json.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "gate/request.hpp"

namespace hapax::gate {

// `type`: the last part of the problem's URI, a fixed word. `detail`: for people; never a key, a
// token, or a stored answer. Pure.
Answer problem(int status, const std::string& type, const std::string& title,
               const std::string& detail, observe::Answered how,
               std::optional<std::chrono::seconds> retry_after = {});

// The client made a mistake, and the gate did not look at PostgreSQL.
Answer refused(int status, const std::string& type, const std::string& title,
               const std::string& detail);

// Nothing was stored, and a retry may work.
Answer unavailable(const std::string& detail,
                   std::chrono::seconds retry_after = std::chrono::seconds(1));

// A handler rejected the request, with these words.
Answer rejected(const std::string& words);

// Another request has the key now, or had it for another request.
Answer in_flight();
Answer drifted();

// A time in the format of RFC 9110, in every locale.
std::string http_date(std::chrono::sys_seconds when);

}  // namespace hapax::gate
