#!/bin/sh
# Takes the pictures of docs/console.md anew, from the test that opens the console in a browser.
# Needs a build in build/release and Chromium (scripts/install_packages.sh browser).
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
HAPAX_SCREENSHOTS=$work build/release/bin/hapax_pgtests --gtest_filter='ConsoleBrowser.*'
mkdir -p docs/console
cp "$work/light-overview.png" "$work/dark-letters.png" "$work/light-audit.png" "$work/light-keys.png" docs/console/
cp "$work/phone-dark-0-overview.png" docs/console/phone.png
