// The parts of the configuration, with one function each. Each reads the members that are there,
// reports mistakes, and leaves defaults for the others. Then it finishes its object.
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
// The same without `parent`, because a request is always a child of its client's span.
void read_gate_traces(Object& section, Traces& traces);
void read_log(Object& section, Log& log);
void read_console(Object& section, Console& console);
void read_route(Object& section, Route& route);

// A topic's name, as Kafka allows it. librdkafka would take a name that begins with ^ for a
// pattern, so one route would read many topics.
struct Topic {
  std::optional<std::string> operator()(Reader& reader, const Value& value) const;
};

// "host:port", or off.
void read_listen(Object& section, const std::string& name, std::optional<Listen>& listen);
// The members of a route that choose the handler and its options.
void read_handler(Object& route, Route& into);

// What read_document() finds beside the values.
struct Document {
  std::vector<Problem> problems;
  std::vector<std::string> warnings;
};

// Parses the text and gives its members to `read`, which reads all members that are allowed.
// `file`: the path of the text's file, or null. `open_to_others`: other users can read the file.
Document read_document(std::string_view text, const Environment& environment,
                       const std::string* file, bool open_to_others,
                       const std::function<void(Object&)>& read);
// The relative paths of plugins and schemas begin in the folder of `file`.
void resolve_paths(std::vector<Route>& routes, const std::string& file);

// The section "payload" of a route. Call it after read_key_spec(), because it completes the spec.
void read_payload(Object& route, Route& into);

// The members of a route that give its messages their names: scope, tenant, key, missing_key,
// tombstone, fingerprint. `handler`: the scope if there is none. Does not finish the object.
void read_key_spec(Object& route, const std::string& handler, key::KeySpec& spec);

}  // namespace hapax::config
