#!/usr/bin/env bash
# Shows that the Debian packages work: makes them on each Debian that hapax promises, looks at them
# with lintian, and installs them on a bare system of that release (tests/install/bare_test.sh).
#
#   scripts/packages.sh                    bookworm and trixie
#   scripts/packages.sh trixie             one
#   PLACE=/srv/debian scripts/packages.sh  systems go to PLACE/<release>… and stay there
#
# With systemd-container and what `scripts/install_packages.sh test chaos` installs, it also upgrades a
# worker under load (tests/install/upgrade_test.py). With buildah it also makes the image
# (tests/install/image_test.sh).
#
# As root, with debootstrap; about 5 GB and a quarter of an hour a release. What comes out:
# build/packages/<release>/, with the packages and the logs. Exit codes: 0 all passed; 1 not so; 2
# the command line, or something needed is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
known='bookworm trixie'
. scripts/bare_system.sh
for release in "$@"; do
  [[ " $known " == *" $release "* ]] || refuse "no release $release here; there are: $known"
done

# stage <what> <log> <command…>
stage() {
  echo "$release: $1" >&2
  "${@:3}" >"$2" 2>&1 || {
    local code=$?
    tail -n 20 "$2" >&2
    return "$code"
  }
}

# In a system with the tools to build: the packages, looked at.
build='scripts/install_packages.sh build package && cmake --workflow --preset package &&
  tests/install/packages_test.sh build/package .'

try() {
  local root=$1 out=$PWD/build/packages/$release
  rm -rf "$out"
  mkdir -p "$out"
  rm -rf --one-file-system "$root-bare"
  stage 'its system' "$out/system.log" make_system "$root" "$release" &&
    cp -a "$root" "$root-bare" || return 1
  [ -e "$root-builder" ] || cp -a "$root" "$root-builder"
  stage 'the packages' "$out/build.log" eval \
    'make_system "$root-builder" "$release" && inside "$root-builder" "$build"' || return 1
  cp "$root-builder"/root/hapax/*.deb "$out"
  mkdir "$root-bare/root/packages"
  cp "$out"/*.deb "$root-bare/root/packages"
  stage 'a bare system with them' "$out/bare.log" inside "$root-bare" \
    'tests/install/bare_test.sh /root/packages /root/hapax' || return 1
  tail -n 1 "$out/bare.log"
  upgrade "$root" "$out" || return 1
  tail -n 1 "$out/upgrade.log"
  grep -q "^FROM debian:$release" Dockerfile || return 0
  if_tools_are_there 'the image' "$out/image.log" tests/install/image_test.sh "$root" "$PWD" ||
    return 1
  tail -n 1 "$out/image.log"
}

# stage, if the tools for it are there.
if_tools_are_there() {
  local code=0
  stage "$@" || code=$?
  [ "$code" -eq 0 ] || [ "$code" -eq 77 ]
}

upgrade() {
  local root=$1 out=$2
  rm -rf --one-file-system "$root-booted"
  cp -a "$root" "$root-booted"
  stage 'a system with systemd' "$out/booted.log" inside "$root-booted" \
    'apt-get update -q && apt-get install -q -y --no-install-recommends systemd-sysv dbus' || return 1
  if_tools_are_there 'an upgrade under load' "$out/upgrade.log" tests/install/upgrade_test.py \
    "$root-booted" "$out" "$root-builder/root/hapax/build/package/lib/libpayments.so"
}

code=0
for release in ${@:-$known}; do
  root=${PLACE:-}
  [ -n "$root" ] || root=$(mktemp -d /var/tmp/hapax-XXXXXX) made=$root
  try "$root/$release" || code=1
  [ -z "$made" ] || rm -rf --one-file-system "$made"
  made=''
done
echo 'packages and logs: build/packages'
exit "$code"
