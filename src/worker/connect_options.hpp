// How a worker connects to PostgreSQL.
#pragma once

#include "config/config.hpp"
#include "store/session.hpp"

namespace hapax::worker {

// The PostgreSQL settings of a worker's sessions. If the url comes from an @file, this reads the
// file again, so a password can change without a restart.
// Throws: store::DatabaseError if that file names another database by now. Blocks: on the file.
store::ConnectOptions connect_options(const config::Config& config);

}  // namespace hapax::worker
