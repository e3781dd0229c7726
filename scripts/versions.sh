#!/usr/bin/env bash
# Shows that hapax works on each Debian that it promises: on a bare system of that release, with
# nothing but a clone of what is committed here, ./demo.sh and ./test.sh do what the README says.
#
#   scripts/versions.sh                    bookworm and trixie
#   scripts/versions.sh trixie             one
#   PLACE=/srv/debian scripts/versions.sh  systems go to PLACE/<release> and stay there
#
# As root, with debootstrap; about 4 GB a release. Debian's mirror is the one that this machine's
# apt uses. Logs: build/versions/<release>/. Exit codes: 0 all passed and none was skipped; 1 not
# so; 2 the command line, or something needed is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
known='bookworm trixie'
logs=$PWD/build/versions
. scripts/bare_system.sh
for release in "$@"; do
  [[ " $known " == *" $release "* ]] || refuse "no release $release here; there are: $known"
done

# count <word> <log>: as each test program sums up at its end.
count() {
  awk -v line="^\\\\[ *$1 *\\\\] [0-9]+ tests?[.,]" '$0 ~ line {n += $4} END {print n + 0}' "$2"
}

row() { table+=$(printf '%-9s %-7s %-14s %-11s %-11s %-7s %-9s %8s %7s %7s %8s %9s' "$@")$'\n'; }
table=''
row release g++ libpqxx librdkafka PostgreSQL demo ctest seconds passed failed skipped warnings
# shellcheck disable=SC2016  # for the shell in there
versions='g++ -dumpfullversion
  for package in libpqxx-dev librdkafka-dev; do
    dpkg-query -W -f "\${Version}\n" $package | sed "s/^[0-9]*://; s/-[^-]*$//"
  done
  /usr/lib/postgresql/*/bin/postgres --version | cut -d" " -f3'

# Both commands, and a row of the table. Fails where one of them does, or a test was skipped.
try() {
  local release=$1 root=$2 log=$logs/$1 fine=0 demo=exact began=$SECONDS
  rm -rf "$log"
  mkdir -p "$log"
  echo "$release: its system" >&2
  make_system "$root" "$release" >"$log/system.log" 2>&1 || {
    tail -n 20 "$log/system.log" >&2
    row "$release" - - - - - 'no system' $((SECONDS - began)) - - - -
    return 1
  }
  echo "$release: ./demo.sh" >&2
  inside "$root" ./demo.sh >"$log/demo.log" 2>&1 || fine=1 demo=FAILED
  echo "$release: ./test.sh" >&2
  inside "$root" ./test.sh >"$log/test.log" 2>&1 || fine=1
  local build=$root/root/hapax/build
  cp "$build/demo.log" "$log/demo-build.log"
  cp "$build/test.log" "$log/test-build.log"
  cp "$build/release/Testing/Temporary/LastTest.log" "$log/tests.log" 2>/dev/null ||
    : >"$log/tests.log"
  inside "$root" "$versions" >"$log/versions" 2>>"$log/system.log" || fine=1
  local all skipped
  all=$(awk '/tests passed, .* failed out of/ {print $NF - $4 "/" $NF}' "$log/test.log")
  grep -E '\((Failed|Timeout|Not Run)\)|^\[  FAILED  \] .* \([0-9]+ ms\)$' "$log/test.log" >&2 ||
    true
  skipped=$(count SKIPPED "$log/tests.log")
  [ "$skipped" -eq 0 ] && ! grep -q '^NOT TESTED' "$log/test.log" || fine=1
  local found
  mapfile -t found <"$log/versions"
  row "$release" "${found[0]--}" "${found[1]--}" "${found[2]--}" "${found[3]--}" "$demo" \
    "${all:-FAILED}" $((SECONDS - began)) "$(count PASSED "$log/tests.log")" \
    "$(count FAILED "$log/tests.log")" "$skipped" \
    "$(cat "$log"/*-build.log | grep -c 'warning:' || true)"
  return "$fine"
}

code=0
for release in ${@:-$known}; do
  root=${PLACE:-}
  [ -n "$root" ] || root=$(mktemp -d /var/tmp/hapax-XXXXXX) made=$root
  try "$release" "$root/$release" || code=1
  [ -z "$made" ] || rm -rf --one-file-system "$made"
  made=''
done
printf '%s' "$table"
echo "logs: build/versions"
exit "$code"
