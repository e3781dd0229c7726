#!/bin/sh
# Installs hapax into an empty prefix and builds a handler project against it, as a user would: a
# plugin by one line, and a binary with the handler linked in.
#   install_test.sh <build folder> <source folder>
set -eu
build=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
export CMAKE_GENERATOR="${CMAKE_GENERATOR:-Ninja}"  # a bare machine has no make

fail() {
  echo "FAILED: $1" >&2
  exit 1
}

# Where it ends with this exit code and says this on the way.
expect() {
  wanted=$1 said=$2
  shift 2
  code=0
  "$@" >"$work/output" 2>&1 || code=$?
  [ "$code" = "$wanted" ] || { cat "$work/output"; fail "$* ended with $code, not $wanted"; }
  grep -q "$said" "$work/output" || { cat "$work/output"; fail "$* did not say: $said"; }
}

cmake --install "$build" --prefix "$prefix" >/dev/null
for file in bin/hapax include/hapax/handler.hpp include/hapax/testing.hpp lib/libhapax.a \
  lib/libhapax_testing.a lib/hapax/libpayments.so \
  lib/cmake/hapax/hapax-config.cmake lib/cmake/hapax/hapax-config-version.cmake \
  lib/cmake/hapax/hapax-targets.cmake share/hapax/hapax.schema.json share/hapax/roles.sql \
  share/doc/hapax/README.md share/doc/hapax/docs/configuration.md; do
  [ -f "$prefix/$file" ] || fail "$file is not installed"
done
# What is installed must not need the tree it was made from.
mkdir "$work/project"
cp "$source/examples/payments/"*.?pp "$work/project/"
cat >"$work/project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(booking LANGUAGES CXX)
find_package(hapax 0.1 REQUIRED)
hapax_add_handler(booking payments.cpp)
add_executable(booking_worker linked.cpp)
target_link_libraries(booking_worker PRIVATE hapax::hapax)
CMAKE
cmake -S "$work/project" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/output" 2>&1 ||
  { cat "$work/output"; fail "a project cannot find_package(hapax)"; }
cmake --build "$work/build" >"$work/output" 2>&1 ||
  { cat "$work/output"; fail "a project cannot build against the installed hapax"; }
if grep -rq "$source" "$prefix/lib/cmake"; then
  fail "the installed package names the source tree"
fi

expect 0 '^hapax [0-9]' "$prefix/bin/hapax" --version
expect 0 '^hapax [0-9]' "$work/build/booking_worker" --version

# Port 1 refuses: whoever comes as far as PostgreSQL (exit code 4) has found its handler.
cat >"$work/worker.json" <<'JSON'
{
  "kafka": {"bootstrap.servers": "127.0.0.1:1", "group.id": "booking"},
  "postgres": {"url": "postgresql://127.0.0.1:1/none", "wait_at_start": false},
  "routes": [{"topic": "payments", "handler": "payments", "key": {"header": "id"}}],
  "admin": {"listen": false}
}
JSON
expect 3 'no handler "payments"' "$prefix/bin/hapax" run -c "$work/worker.json"
expect 4 'PostgreSQL is not ready' \
  "$prefix/bin/hapax" run -c "$work/worker.json" --plugin "$work/build/libbooking.so"
expect 4 'PostgreSQL is not ready' "$work/build/booking_worker" run -c "$work/worker.json"
expect 4 'PostgreSQL is not ready' \
  "$prefix/bin/hapax" run -c "$work/worker.json" --plugin "$prefix/lib/hapax/libpayments.so"

# The example of a project with tests, as it stands. If a library is missing, the way out is said.
cp -r "$source/examples/testing" "$work/tested"
expect 1 'apt-get install libprotobuf-dev$' cmake -S "$work/tested" -B "$work/lacking" \
  -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_DISABLE_FIND_PACKAGE_Protobuf=ON
cmake -S "$work/tested" -B "$work/tested/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/output" 2>&1 &&
  cmake --build "$work/tested/build" >>"$work/output" 2>&1 ||
  { cat "$work/output"; fail "examples/testing does not build against the installed hapax"; }
expect 0 '100% tests passed' ctest --test-dir "$work/tested/build" --output-on-failure
# A new project, by the command; its name is a word of SQL, to see that nothing minds.
(cd "$work" && expect 0 'cmake --workflow' "$prefix/bin/hapax" new order)
(cd "$work" && expect 1 'nothing was written' "$prefix/bin/hapax" new order)
expect 2 'is no name for a handler' "$prefix/bin/hapax" new Order-1
expect 2 'CMake has a target called test' "$prefix/bin/hapax" new test
expect 2 'PostgreSQL keeps roles whose names begin with pg_' "$prefix/bin/hapax" new pg
expect 2 'a class called Record; choose another name, such as records' "$prefix/bin/hapax" new record
if grep -rn '@name@\|@Class@' "$work/order"; then fail "a mark is left in the new project"; fi
(cd "$work/order" && CMAKE_PREFIX_PATH=$prefix cmake --workflow --preset default >"$work/output" 2>&1) ||
  { cat "$work/output"; fail "the project of hapax new does not build and pass its test"; }
# The other kinds, without an optimiser, which takes most of the time.
for kind in publish outside gate; do
  (cd "$work" && expect 0 'cmake --workflow' "$prefix/bin/hapax" new "new_$kind" "--$kind")
  if grep -rn '@name@\|@Class@' "$work/new_$kind"; then fail "a mark is left in the new project"; fi
  (cd "$work/new_$kind" && export CMAKE_PREFIX_PATH="$prefix" &&
    { cmake --preset default -DCMAKE_BUILD_TYPE= && cmake --build --preset default; } >"$work/output" 2>&1 &&
    ctest --preset default >"$work/output" 2>&1) ||
    { cat "$work/output"; fail "the project of hapax new --$kind does not build and pass its test"; }
done
expect 2 'excludes' "$prefix/bin/hapax" new both --gate --outside
echo "shop $(printf %s secret | sha256sum | cut -d ' ' -f 1)" >"$work/tokens"
expect 1 'ok    handler new_gate: version 1' env TOKENS="$work/tokens" DATABASE_URL=postgresql://127.0.0.1:1/none \
  "$prefix/bin/hapax" check -c "$work/new_gate/gate.json"
for kind in publish outside; do
  expect 1 "ok    handler new_$kind: version 1" env KAFKA=127.0.0.1:1 \
    DATABASE_URL=postgresql://127.0.0.1:1/none "$prefix/bin/hapax" check -c "$work/new_$kind/worker.json"
done
expect 1 'handler order: version 1' env KAFKA=127.0.0.1:1 DATABASE_URL=postgresql://127.0.0.1:1/none \
  "$prefix/bin/hapax" check -c "$work/order/worker.json"
echo "installed, found, built and loaded"
