#!/usr/bin/env bash
# Install the services that the tests use and that no Python package brings: Prometheus and promtool.
# Root on Debian or a relative of it; does nothing when they are there. No daemon is started or left enabled.
set -euo pipefail

missing=()
for program in prometheus promtool; do
    command -v "$program" >/dev/null || missing+=("$program")
done
[ "${#missing[@]}" -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
    echo "install-services: ${missing[*]} missing, and this system has no apt-get:" \
        "put the programs of Prometheus >= 2.42 on PATH" >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "install-services: ${missing[*]} missing: run 'sudo $0', or put Prometheus >= 2.42 on PATH" >&2
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
apt-get install -y -qq --no-install-recommends prometheus
if [ -d /run/systemd/system ]; then
    systemctl disable prometheus
fi
