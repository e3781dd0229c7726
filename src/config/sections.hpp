// The parts of the configuration, one function each: reads what is there, reports what is wrong,
// leaves the default otherwise. Each finishes its object.
//
// Thread safety: as Reader's.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "config/reader.hpp"

namespace hapax::config {

void read_kafka(Object& section, Kafka& kafka);
void read_postgres(Object& section, Postgres& postgres);
void read_worker(Object& section, Worker& worker);
void read_admin(Object& section, Admin& admin);
void read_publish(Object& section, Publish& publish);
void read_traces(Object& section, Traces& traces);
// A request is a child of its client's span in any case: without `parent`.
void read_gate_traces(Object& section, Traces& traces);
void read_log(Object& section, Log& log);
void read_console(Object& section, Console& console);
void read_route(Object& section, Route& route);

// What Kafka allows. A name with a ^ would be a pattern to librdkafka: many topics, one route.
struct Topic {
  std::optional<std::string> operator()(Reader& reader, const Value& value) const;
};

// "host:port", or off.
void read_listen(Object& section, const std::string& name, std::optional<Listen>& listen);
// The members of a route that say what runs, and with which options.
void read_handler(Object& route, Route& into);

// What the reading of a whole document leaves beside the values.
struct Document {
  std::vector<Problem> problems;
  std::vector<std::string> warnings;
};

// Parses the text and hands its members to `read`, which finds all that may stand there.
// `file`: where the text came from, or null. `open_to_others`: the file is.
Document read_document(std::string_view text, const Environment& environment,
                       const std::string* file, bool open_to_others,
                       const std::function<void(Object&)>& read);
// The relative paths of plugins and schemas begin in the folder of `file`.
void resolve_paths(std::vector<Route>& routes, const std::string& file);

// The section "payload" of a route. After read_key_spec(), which it completes.
void read_payload(Object& route, Route& into);

// What names a route's messages: scope, tenant, key, missing_key, tombstone, fingerprint.
// `handler`: the scope if there is none. Members of a route; does not finish it.
void read_key_spec(Object& route, const std::string& handler, key::KeySpec& spec);

}  // namespace hapax::config
