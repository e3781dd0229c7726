#!/bin/sh
# Installs the packages on a bare Debian, and works with them as a user does: runs a worker, builds a
# handler with a test outside of any tree of hapax, and makes a package of it. As root, and only on a
# system made for that (scripts/packages.sh): it installs and removes packages.
#   bare_test.sh <folder with hapax_*.deb and libhapax-dev_*.deb> <source folder>
set -eu
debs=$1
source=$2
work=$(mktemp -d)
cd "$work"
export DEBIAN_FRONTEND=noninteractive

fail() {
  echo "FAILED: $1" >&2
  exit 1
}
install() { apt-get install -q -y --no-install-recommends "$@" >>log 2>&1; }

apt-get update -q >log 2>&1
install "$debs"/hapax_*.deb || { tail log; fail "hapax cannot be installed"; }
hapax --version
[ "$(command -v hapax)" = /usr/bin/hapax ] || fail "hapax is not in the path"

# It starts, without a server to be had: it waits for PostgreSQL and says so, and SIGTERM ends it.
mkfifo events
cat >worker.json <<'JSON'
{
  "kafka": {"bootstrap.servers": "127.0.0.1:1", "group.id": "g"},
  "postgres": {"url": "postgresql://127.0.0.1:1/none"},
  "routes": [{"topic": "t", "handler": "hello", "plugin": "/usr/lib/hello/libhello.so", "key": {"header": "id"}}],
  "admin": {"listen": false}, "log": {"format": "json"}
}
JSON
code=0
hapax run -c worker.json >out 2>&1 || code=$?
[ "$code" = 3 ] && grep -q 'cannot load the plugin' out || fail "without the plugin: $code, $(cat out)"

install "$debs"/libhapax-dev_*.deb g++ cmake ninja-build || fail "libhapax-dev cannot be installed"
mkdir hello
cp "$source/examples/hello/hello.cpp" hello/
cat >hello/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(hello LANGUAGES CXX)
find_package(hapax REQUIRED)
hapax_add_handler(hello hello.cpp)
install(TARGETS hello LIBRARY DESTINATION lib/hello)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hapax-hello)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "me <me@example.org>")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "hapax-abi-${hapax_ABI}$ENV{ANOTHER_ABI}")
include(CPack)
CMAKE
for another in '' 9; do
  ANOTHER_ABI=$another cmake -G Ninja -S hello -B "build$another" >out 2>&1 &&
    cmake --build "build$another" --target package >>out 2>&1 ||
    { cat out; fail "a plugin does not build"; }
done
# A simulation: apt would offer to remove hapax instead.
! install --simulate ./build9/*.deb || fail "a plugin of another ABI can be installed"
install ./build/*.deb || fail "the package of a plugin cannot be installed"

hapax run -c worker.json >events 2>&1 &
worker=$!
while read -r line; do
  echo "$line" >>out
  case $line in *waiting_for_postgres*) kill -TERM $worker ;; esac
done <events
wait $worker || fail "the worker ended with $?: $(cat out)"
grep -q waiting_for_postgres out || fail "the worker did not wait: $(cat out)"

# With a PostgreSQL it works. The demo starts one, and a broker; it kills a worker half-way.
install postgresql
hapax demo >out 2>&1 || { tail -n 30 out; fail "the demo"; }
tail -n 1 out

# A project with a test, which needs what libhapax-dev recommends.
# shellcheck disable=SC2046  # words
install $(dpkg-deb -f "$debs"/libhapax-dev_*.deb Recommends | tr -d ,) libgtest-dev
install sudo
# Types what docs/tutorial.md shows under a heading, in a folder.
type_section() {
  awk -v heading="## $1" '/^## /{on = $0 == heading} on && /^```/{code = $0 == "```sh"; next} on && code' \
    "$source/docs/tutorial.md" >typed
  [ -s typed ] || fail "docs/tutorial.md has nothing to type under: $1"
  (cd "$2" && sh -eux "$work/typed") >out 2>&1 || { tail -n 30 out; fail "docs/tutorial.md, $1"; }
}
mkdir clone
type_section '2. Make a project' clone
grep -q '100% tests passed' out || fail "the project of hapax new has no tests"
service postgresql start >>log 2>&1
type_section '3. Make the database' payments
(cd payments && KAFKA=127.0.0.1:1 \
  DATABASE_URL='postgresql://payments_worker:payments@localhost/payments?sslmode=disable' \
  hapax check -c worker.json >../out 2>&1) || true
grep -q '^ok    rights: all' out || { cat out; fail "the tutorial's worker lacks rights"; }
service postgresql stop >>log 2>&1
for kind in publish outside gate; do
  hapax new "new_$kind" "--$kind" >out 2>&1
  (cd "new_$kind" && cmake --workflow --preset default >../out 2>&1) ||
    { tail -n 30 out; fail "the project of hapax new --$kind"; }
done

dpkg-query -L hapax libhapax-dev | grep -v '/\.$' | while read -r path; do
  [ -d "$path" ] || echo "$path"
done >files
apt-get purge -q -y hapax libhapax-dev >>log 2>&1
while read -r path; do
  [ ! -e "$path" ] || fail "$path stays after a purge"
done <files
echo "installed, worked with, built against and removed: $(wc -l <files) files"
