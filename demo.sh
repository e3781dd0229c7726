#!/bin/sh
# Shows on this machine that every message takes effect exactly once. Needs nothing but Debian 12
# or 13 and root or sudo; arguments go to `hapax demo`.
set -eu
cd "$(dirname "$0")"
. scripts/step.sh

step 'packages' scripts/install_packages.sh build
# As docs/tutorial.md goes on: the packages then take what is compiled here.
step 'configure' cmake --preset package
step 'build (the first time takes minutes)' cmake --build --preset package --target hapax_binary
exec build/package/bin/hapax demo "$@"
