#!/usr/bin/env bash
# Run one Apache Kafka broker on 127.0.0.1 in the foreground: for users without Docker, and for the tests.
# The process becomes the broker (exec): its pid is this one's. Data that is there is used again.
set -euo pipefail

usage() {
    echo "usage: start.sh [--port 9092] [--controller-port PORT+1] [--data DIR] [--properties FILE, broker settings that win]" >&2
    exit 2
}

port=9092 controller_port='' extra=/dev/null
data=${XDG_STATE_HOME:-$HOME/.local/state}/calmon/kafka
while [ $# -gt 0 ]; do
    [ $# -ge 2 ] || usage
    case $1 in
        --port) port=$2 ;;
        --controller-port) controller_port=$2 ;;
        --data) data=$2 ;;
        --properties) extra=$2 ;;
        *) usage ;;
    esac
    shift 2
done
controller_port=${controller_port:-$((port + 1))}

here=$(cd "$(dirname "$0")" && pwd)
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
if ! release=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p') || [ "${release:-0}" -lt 17 ]; then
    echo "kafka: Java 17 or newer is missing ('$java' is ${release:-not there}):" \
        "run 'sudo deploy/local/install-services.sh' (Debian), or set JAVA_HOME" >&2
    exit 1
fi
jars=$("$here/fetch.sh")

mkdir -p "$data"
exec 9>"$data/lock" # held by the broker as long as it lives; Kafka's own lock comes too late to save the metadata log from a second one
flock -n 9 || { echo "kafka: a broker that runs already has its data in $data: choose another --data" >&2; exit 1; }
for taken in "$port" "$controller_port"; do
    if (: <>"/dev/tcp/127.0.0.1/$taken") 2>/dev/null; then
        echo "kafka: something listens on 127.0.0.1:$taken already: choose another --port (the controller takes the next one)" >&2
        exit 1
    fi
done
cat "$here/server.properties" - "$extra" >"$data/server.properties" <<END

listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller_port
controller.quorum.voters=1@127.0.0.1:$controller_port
log.dirs=$data/log
END

run=("$java" -cp "$jars/*" "-Dlog4j2.configurationFile=$here/log4j2.xml" -XX:+UseSerialGC -XX:TieredStopAtLevel=1)
if [ ! -e "$data/log/meta.properties" ]; then
    # A cluster id must not begin with '-', or the tool takes it for an option.
    id=$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=' | sed 's/^-/A/')
    "${run[@]}" -Xmx128m kafka.tools.StorageTool format --cluster-id "$id" --config "$data/server.properties" >"$data/format.log" 2>&1 ||
        { cat "$data/format.log" >&2; exit 1; }
fi
echo "kafka: broker at 127.0.0.1:$port (data in $data), ready when it says 'Kafka Server started'; Ctrl-C ends it"
exec "${run[@]}" -Xms128m -Xmx512m kafka.Kafka "$data/server.properties"
