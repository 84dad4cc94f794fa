#!/bin/sh
# Installs the Debian packages the tests like to have. Nothing here is required: without them the
# tests that need the cross compiler are skipped and say so.
set -eu

wanted="gcc-arm-none-eabi binutils-arm-none-eabi"

if command -v arm-none-eabi-gcc >/dev/null 2>&1; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "system packages: no apt-get here (not Debian); going on without: $wanted"
    exit 0
fi
if [ "$(id -u)" != 0 ]; then
    echo "system packages: not root; to rebuild the examples: apt-get install $wanted"
    exit 0
fi
log=$(mktemp)
if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $wanted; } >"$log" 2>&1; then
    echo "system packages: apt-get did not succeed; going on without: $wanted"
    tail -n 3 "$log"
fi
rm -f "$log"
