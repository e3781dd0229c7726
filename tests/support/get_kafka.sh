#!/bin/sh
# Puts the jars of Apache Kafka where the tests look for them, once; later runs return at once. Beside
# them an archive of the classes that a server loads, which saves Java a third of each start.
# Exit codes: 0 there; 77 Java or Maven is missing (the tests then skip); else Maven failed.
set -eu

version=4.3.0
here=$(cd "$(dirname "$0")" && pwd)
folder=${HAPAX_CACHE:-$HOME/.cache/hapax}/kafka-$version

# Java writes it when this server ends. Without it, as before Java 13, tests take longer.
make_archive() {
  mkdir "$work/server" && cd "$work/server" || return
  # An address that no other server has.
  cat >server.properties <<'PROPERTIES'
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.29.4.30:29431
listeners=BROKER://127.29.4.30:29430,CONTROLLER://127.29.4.30:29431
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
log.dirs=data
PROPERTIES
  java -cp "$folder/lib/*" kafka.tools.StorageTool format -t abcdefghijklmnopqrstuv -c server.properties
  mkfifo lines
  # As kafka_server.cpp starts it.
  java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit="$work/classes.jsa" \
    -Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info \
    -cp "$folder/lib/*" kafka.Kafka server.properties >lines 2>&1 &
  while read -r line; do
    case $line in *'Kafka Server started'*) kill -TERM $! ;; esac
  done <lines
  mv "$work/classes.jsa" "$folder/classes.jsa"
}

download() {
  if ! mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies \
      -DoutputDirectory="$work/lib" -DincludeScope=runtime >"$work/log" 2>&1; then
    cat "$work/log" >&2
    echo "get_kafka: Maven could not fetch Kafka $version" >&2
    exit 1
  fi
  rm -rf "$folder/lib" "$folder/classes.jsa"
  mv "$work/lib" "$folder/lib"
  touch "$folder/complete"
}

there() { [ -e "$folder/complete" ] && [ "$folder/complete" -nt "$here/pom.xml" ]; }
there && [ -e "$folder/classes.jsa" ] && exit 0

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
there || download
(make_archive) >"$work/log" 2>&1 || true
