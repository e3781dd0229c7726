#!/bin/sh
# Builds the image of the Dockerfile without a daemon, and runs it as Kubernetes does: the user is a number
# and owns nothing, a worker waits for PostgreSQL, and SIGTERM ends it. As root; exits 77 without buildah.
#   image_test.sh <bare Debian of the Dockerfile's release> <source folder>
set -eu
system=$1
source=$2
command -v buildah >/dev/null || { echo "no buildah"; exit 77; }
work=$(mktemp -d /var/tmp/hapax-image-XXXXXX)
trap 'rm -rf --one-file-system "$work"' EXIT
# No kernel module and no namespace is needed with these.
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
images() { buildah --root "$work/root" --runroot "$work/run" "$@"; }

fail() {
  echo "FAILED: $1" >&2
  exit 1
}

# No registry is asked: this system has the name of the base.
base=$(sed -n 's/^FROM \(debian:[a-z-]*\) .*/\1/p' "$source/Dockerfile" | head -n 1)
container=$(images from scratch)
images add -q "$container" "$system" / >/dev/null
images commit -q --rm "$container" "docker.io/library/$base" >/dev/null
images bud -q --pull-never --layers=false -t hapax "$source" >"$work/log" 2>&1 ||
  { tail -n 30 "$work/log"; fail "the image is not built"; }

container=$(images from --pull-never hapax)
inside() { images run "$container" -- "$@"; }
inside hapax --version
[ "$(inside id -u)" = 65532 ] || fail "it runs as $(inside id -u)"
owned=$(find "$(images mount "$container")" -xdev -user 65532)
[ -z "$owned" ] || fail "its user owns $owned"
start=$(images inspect --format '{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}' "$container")
[ "$start" = '[hapax] [run -c /etc/hapax/worker.json]' ] || fail "it starts $start"

cat >"$work/worker.json" <<'JSON'
{
  "kafka": {"bootstrap.servers": "127.0.0.1:1", "group.id": "g"},
  "postgres": {"url": "postgresql://127.0.0.1:1/none"},
  "routes": [{"topic": "t", "handler": "payments", "plugin": "/usr/local/lib/hapax/libpayments.so",
              "key": {"header": "id"}}],
  "admin": {"listen": false}
}
JSON
chmod 755 "$work"
chmod 644 "$work/worker.json"
mkfifo "$work/events"
images run -v "$work/worker.json:/etc/hapax/worker.json:ro" "$container" -- \
  hapax run -c /etc/hapax/worker.json >"$work/events" 2>&1 &
run=$!
while read -r line; do
  echo "$line" >>"$work/out"
  case $line in *waiting_for_postgres*) pkill -TERM -U 65532 -x hapax ;; esac
done <"$work/events"
wait "$run" || fail "the worker ended with $?: $(cat "$work/out")"
grep -q waiting_for_postgres "$work/out" || fail "the worker did not wait: $(cat "$work/out")"
echo "an image of $(images images --format '{{.Size}}' hapax) from $base: a worker waited for PostgreSQL, and SIGTERM ended it"
