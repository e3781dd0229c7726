#!/bin/sh
# Puts the jars of Apache Kafka where the tests look for them, once; later runs return at once.
# Exit codes: 0 there; 77 Java or Maven is missing (the tests then skip); else Maven failed.
set -eu

version=4.3.0
here=$(cd "$(dirname "$0")" && pwd)
folder=${HAPAX_CACHE:-$HOME/.cache/hapax}/kafka-$version

[ -e "$folder/complete" ] && [ "$folder/complete" -nt "$here/pom.xml" ] && exit 0

for tool in java mvn; do
  if ! command -v "$tool" >/dev/null; then
    echo "get_kafka: $tool is missing: apt-get install default-jre-headless maven" >&2
    exit 77
  fi
done

# In a folder of our own and renamed at the end: an interrupted or second run does no harm.
mkdir -p "$folder"
work=$(mktemp -d "$folder/download-XXXXXX")
trap 'rm -rf "$work"' EXIT
if ! mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies \
    -DoutputDirectory="$work/lib" -DincludeScope=runtime >"$work/log" 2>&1; then
  cat "$work/log" >&2
  echo "get_kafka: Maven could not fetch Kafka $version" >&2
  exit 1
fi
rm -rf "$folder/lib"
mv "$work/lib" "$folder/lib"
touch "$folder/complete"
