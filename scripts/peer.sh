#!/usr/bin/env bash
# Books a topic of payments with hapax, for a comparison with other consumers on the same work:
# claim a key, insert one row into `payments (id, account, amount_minor)`, commit.
#
#   BROKER PGURL TOPIC GROUP N   where, and how many payments to wait for
#   CONCURRENCY=16               lanes; a quarter of it in MODE=batch, where few lanes are better
#   MODE=message|batch|positions a transaction for each message, or for up to BATCH=100; positions
#                                is batch with "key": "position" instead of the header
#   DURABILITY=synchronous       or checkpoint (worker.durability)
#   BUILD=build/release          where hapax was built, with its tests
#
# Exit code 0 once N are booked; the worker's log is shown where it ends before that. The table
# `payments` must be there; hapax's own schema is made.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${BROKER:?}" "${PGURL:?}" "${TOPIC:?}" "${GROUP:?}" "${N:?}"
build=${BUILD:-build/release} lanes=${CONCURRENCY:-16} batch=1
key='{"header": "idempotency-key"}'
case ${MODE:-message} in
  message) ;;
  batch | positions) batch=${BATCH:-100} lanes=$(((lanes + 3) / 4)) ;;
  *) echo "MODE is message, batch or positions, not $MODE" >&2; exit 2 ;;
esac
[ "${MODE:-message}" != positions ] || key='"position"'

work=$(mktemp -d) worker=
finish() {
  [ -z "$worker" ] || kill -TERM "$worker" 2>/dev/null || true
  [ -z "$worker" ] || wait "$worker" || true
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

"$build/bin/hapax" migrate up --url "$PGURL" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
cat >"$work/worker.json" <<JSON
{"kafka": {"bootstrap.servers": "\${BROKER}", "group.id": "\${GROUP}"},
 "postgres": {"url": "\${PGURL}"},
 "worker": {"lanes": "\${LANES}", "durability": "\${DURABILITY:-synchronous}"},
 "routes": [{"topic": "\${TOPIC}", "handler": "plain_payments", "plugin": "\${PLUGIN}",
             "batch": "\${BATCH}", "key": $key}],
 "admin": {"listen": "127.0.0.1:0"}, "log": {"format": "json"}}
JSON
BROKER=$BROKER GROUP=$GROUP PGURL=$PGURL TOPIC=$TOPIC LANES=$lanes BATCH=$batch \
  PLUGIN=$build/lib/libplain_payments.so "$build/bin/hapax" run -c "$work/worker.json" \
  >"$work/log" 2>&1 &
worker=$!

# What looks on takes processor time from what is measured: few processes, seldom.
all_booked() {
  [ -n "$port" ] || port=$(sed -n 's/.*"port":\([0-9]*\).*/\1/p' "$work/log" | head -n 1)
  [ -n "$port" ] || return 1
  {
    printf 'GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3
    awk -v n="$N" '/^hapax_messages_total[{].*completed/ {sum += $NF} END {exit sum < n}' <&3
  } 3<>"/dev/tcp/127.0.0.1/$port"
}
port=
while kill -0 "$worker" 2>/dev/null; do
  if all_booked; then exit 0; fi
  sleep 0.5
done
echo "the worker ended before $N payments were booked:" >&2
cat "$work/log" >&2
exit 1
