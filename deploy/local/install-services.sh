#!/usr/bin/env bash
# Install what the tests' services need and no Python package brings: Prometheus and promtool, Alertmanager and amtool; Java and Maven
# for Apache Kafka (deploy/local/kafka), and openssl for its certificates; wget, which docker-compose.yml asks
# services with whether they are healthy.
# Root on Debian or a relative of it; does nothing when they are there. No daemon is started or left enabled.
set -euo pipefail

missing=() packages=()
need() { # package, programs
    local package=$1 program
    shift
    for program in "$@"; do
        command -v "$program" >/dev/null || { missing+=("$program") packages+=("$package"); }
    done
}
need prometheus prometheus promtool
command -v alertmanager >/dev/null || need prometheus-alertmanager prometheus-alertmanager
need prometheus-alertmanager amtool
need default-jre-headless java
need maven mvn
need openssl openssl
need wget wget
[ "${#missing[@]}" -eq 0 ] && exit 0

wanted="put the programs of Prometheus >= 2.42, Alertmanager >= 0.25, Java >= 17, Maven >= 3.8, openssl and wget on PATH"
if ! command -v apt-get >/dev/null; then
    echo "install-services: ${missing[*]} missing, and this system has no apt-get: $wanted" >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "install-services: ${missing[*]} missing: run 'sudo $0', or $wanted" >&2
    exit 1
fi

# Debian starts a daemon as soon as its package is installed unless policy-rc.d forbids it (101).
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${packages[@]}"
for daemon in prometheus prometheus-alertmanager; do
    if [[ " ${packages[*]} " == *" $daemon "* ]] && [ -d /run/systemd/system ]; then
        systemctl disable "$daemon"
    fi
done
