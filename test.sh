#!/bin/sh
# Builds everything and runs every test. Needs nothing but Debian 12 or 13 and root or sudo;
# arguments go to ctest: ./test.sh -L unit, ./test.sh -R Watermark.
set -eu
cd "$(dirname "$0")"
. scripts/step.sh

# In CI a warning is an error; it is the same build folder.
preset=release
[ -z "${CI:-}" ] || preset=ci

exec 3>&2  # for what must be seen although the step's output goes to the log
get_kafka() {
  tests/support/get_kafka.sh && return
  [ -z "${CI:-}" ] || return 1
  printf '\nNOT TESTED: without Kafka the tests that need a real one are skipped.\n' >&3
}

step 'packages' scripts/install_packages.sh build test
step 'Kafka (the first time is a download)' get_kafka
step 'configure' cmake --preset "$preset" -DHAPAX_TESTS=ON
step 'build (the first time takes minutes)' cmake --build --preset "$preset"
progress=''
[ ! -t 1 ] || progress=--progress
# Six at a time, even on two cores: they wait for servers more than they compute.
exec ctest --test-dir build/release --output-on-failure $progress -j6 "$@"
