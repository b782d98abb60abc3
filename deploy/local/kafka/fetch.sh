#!/usr/bin/env bash
# Put Apache Kafka's jars (pom.xml, resolved by Maven) into a cache folder, once, and print that folder.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' "$here/pom.xml")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/calmon
jars=$cache/kafka-$version

# The folder has the pom that filled it: another pom means other jars.
if ! cmp -s "$here/pom.xml" "$jars/pom.xml"; then
    if ! command -v mvn >/dev/null; then
        echo "kafka: Maven is missing: run 'sudo deploy/local/install-services.sh' (Debian), or put mvn (Maven 3.8 or newer) on PATH" >&2
        exit 1
    fi
    mkdir -p "$cache"
    exec 9>"$cache/kafka.lock"
    flock 9
    if ! cmp -s "$here/pom.xml" "$jars/pom.xml"; then # else another process fetched them meanwhile
        fresh=$(mktemp -d "$cache/kafka-fetch.XXXXXX")
        trap 'rm -rf "$fresh"' EXIT
        echo "kafka: fetching Apache Kafka $version into $jars" >&2
        mvn -B -q -f "$here/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$fresh" >&2
        cp "$here/pom.xml" "$fresh/"
        chmod 755 "$fresh"
        rm -rf "$jars"
        mv "$fresh" "$jars"
    fi
fi
echo "$jars"
