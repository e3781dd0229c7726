#!/bin/sh
# Puts axe-core where browser_page.py looks for it, once; later runs return at once.
# Exit codes: 0 there; 77 npm is missing (the views are then not checked by it); else npm failed.
set -eu

version=4.14.1
sha256=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c
folder=${HAPAX_CACHE:-$HOME/.cache/hapax}/axe-core-$version

[ ! -e "$folder/axe.min.js" ] || exit 0
if ! command -v npm >/dev/null; then
  echo 'get_axe: npm is missing: apt-get install npm' >&2
  exit 77
fi

# In a folder of our own and renamed at the end: an interrupted or second run does no harm.
mkdir -p "$folder"
work=$(mktemp -d "$folder/download-XXXXXX")
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm pack --silent "axe-core@$version" >&2 && tar -xzf axe-core-*.tgz package/axe.min.js)
echo "$sha256  $work/package/axe.min.js" | sha256sum --check --quiet
mv "$work/package/axe.min.js" "$folder/axe.min.js"
