#!/bin/sh
# Shows on this machine that every message takes effect exactly once. Needs nothing but Debian 12
# or 13 and root or sudo; arguments go to `hapax demo`.
set -eu
cd "$(dirname "$0")"
. scripts/step.sh

step 'packages' scripts/install_packages.sh build
step 'configure' cmake --preset release -DHAPAX_TESTS=OFF
step 'build (the first time takes minutes)' cmake --build --preset release --target hapax_binary
exec build/release/bin/hapax demo "$@"
