// The parts of the configuration, one function each: reads what is there, reports what is wrong,
// leaves the default otherwise. Each finishes its object.
//
// Thread safety: as Reader's.
#pragma once

#include <vector>

#include "config/config.hpp"
#include "config/reader.hpp"

namespace hapax::config {

void read_kafka(Object& section, Kafka& kafka);
void read_postgres(Object& section, Postgres& postgres);
void read_worker(Object& section, Worker& worker);
void read_admin(Object& section, Admin& admin);
void read_publish(Object& section, Publish& publish);
void read_log(Object& section, Log& log);
void read_route(Object& section, Route& route);

// What names a route's messages: scope, tenant, key, missing_key, tombstone, fingerprint.
// `handler`: the scope if there is none. Members of a route; does not finish it.
void read_key_spec(Object& route, const std::string& handler, key::KeySpec& spec);

}  // namespace hapax::config
