// The worker role's rights, as sql/roles.sql gives them.
#pragma once

#include <string>

#include "store/session.hpp"

namespace hapax::store {

// Gives an existing role what a worker needs, in one transaction, and nothing else.
// Precondition: the session is the schema's owner's (or a superuser's), and it is migrated.
// Throws: DatabaseError (no such role, not allowed).
void grant_worker(Session& session, const std::string& role);

// The paths of roles.sql and operator.psql, as an installed hapax has them.
std::string roles_file();
std::string operator_file();

}  // namespace hapax::store
