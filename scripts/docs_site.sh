#!/bin/sh
# Makes a static site of the README and docs/, with a search. It loads nothing from other hosts.
#   scripts/docs_site.sh [folder]      default: build/site; open index.html there
# Needs Debian's python3-myst-parser (scripts/install_packages.sh site). Exit code 77 without.
set -eu
site=${1:-}
[ -z "$site" ] || { mkdir -p "$site" && site=$(cd "$site" && pwd); }
cd "$(dirname "$0")/.."
site=${site:-$PWD/build/site}
if ! /usr/bin/python3 -c 'import sphinx, myst_parser' 2>/dev/null; then
  echo 'Sphinx or MyST is missing: scripts/install_packages.sh site' >&2
  exit 77
fi
# Empties it, so that no page stays that is gone; but only a folder that it made.
if [ -e "$site/searchindex.js" ]; then
  rm -rf "$site"
elif [ -n "$(ls -A "$site" 2>/dev/null)" ]; then
  echo "$site holds other files: name an empty folder" >&2
  exit 1
fi
/usr/bin/python3 -B -m sphinx -q -E -W --keep-going -b html -d "$site/.doctrees" -c scripts/docs_site . "$site"
rm -rf "$site/.doctrees" "$site/.buildinfo" "$site/objects.inv"
echo "$site/index.html"
