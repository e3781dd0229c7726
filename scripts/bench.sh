#!/usr/bin/env bash
# Measures what docs/performance.md shows: each run of `hapax bench` becomes build/bench/NAME.json.
# Prints the tables of all runs that were made, with their spread.
#
#   scripts/bench.sh [-c worker.json --url postgresql://owner@…]   the first table; with options
#   ONLY='*' scripts/bench.sh …                                     all tables, hours
#   ONLY='base keys-*' scripts/bench.sh …                           some, by name
#   PAGE=docs/performance.md ONLY='*' scripts/bench.sh …            also writes them into the page
#
# All of it wants a real Kafka (-c): the built-in broker keeps 5 MiB a partition.
# MESSAGES=200000 and ROUNDS=5 of each run; HAPAX=build/release/bin/hapax.
set -euof pipefail  # -f: ONLY holds patterns, not files
cd "$(dirname "$0")/.."
hapax=${HAPAX:-build/release/bin/hapax} messages=${MESSAGES:-200000} rounds=${ROUNDS:-5}
mkdir -p build/bench
made=()

# run <name> <options…>, and those that were given to this script
run() {
  local name=$1 pattern
  shift
  for pattern in ${ONLY:-base}; do
    # shellcheck disable=SC2053
    [[ $name == $pattern ]] || continue
    echo "$name" >&2
    "$hapax" bench --json --messages "$messages" --rounds "$rounds" "$@" "${given[@]}" \
      >"build/bench/$name.json.new"
    mv "build/bench/$name.json.new" "build/bench/$name.json"
    made+=("build/bench/$name.json")
    return
  done
}
given=("$@")

no_latency=(--seconds 0 --mode message --mode batch)
run base
run durability --durability checkpoint --mode message --mode batch
run delay --postgres-delay 1ms --lanes 16 --mode message --mode batch
run delay-durability --postgres-delay 1ms --durability checkpoint --lanes 16 "${no_latency[@]}"
for lanes in 1 2 4 8 16 32; do run "lanes-$lanes" --lanes "$lanes" "${no_latency[@]}"; done
for partitions in 1 8 64; do
  run "partitions-$partitions" --partitions "$partitions" "${no_latency[@]}"
done
# A tenth as many of ten times the size, so that the log stays as large.
run payload-100 --payload-bytes 100 "${no_latency[@]}"
run payload-1000 --payload-bytes 1000 "${no_latency[@]}"
messages=$((messages / 10)) run payload-10000 --payload-bytes 10000 "${no_latency[@]}"
messages=$((messages / 100)) run payload-100000 --payload-bytes 100000 "${no_latency[@]}"
# What waits in Kafka must not show in memory.
run backlog-1 "${no_latency[@]}"
messages=$((messages * 10)) rounds=1 run backlog-10 "${no_latency[@]}"
for millions in 1 10 50; do
  run "keys-$millions" --keys "${millions}000000" "${no_latency[@]}"
done

scripts/bench_tables.py "${made[@]}"
[ -z "${PAGE:-}" ] || scripts/bench_tables.py build/bench "$PAGE"
