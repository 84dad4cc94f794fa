#!/bin/sh
# Installs Debian packages for one purpose. Nothing here is required: what needs them says so and
# goes on without.
#   system-packages.sh           the cross compilers and debugger, for tests that use them
#   system-packages.sh gallery   glmark2 on llvmpipe under Xvfb, to compare with
set -eu

case ${1-tests} in
tests)
    wanted="gcc-arm-none-eabi binutils-arm-none-eabi gcc-aarch64-linux-gnu gdb-multiarch"
    needed="arm-none-eabi-gcc aarch64-linux-gnu-gcc gdb-multiarch"
    ;;
gallery)
    wanted="xvfb glmark2-es2-x11 apitrace libgl1-mesa-dri libegl1 libgles2"
    needed="Xvfb glmark2-es2 apitrace eglretrace"
    ;;
*)
    echo "usage: $0 [tests | gallery]" >&2
    exit 2
    ;;
esac

present=yes
for program in $needed; do
    command -v "$program" >/dev/null 2>&1 || present=no
done
if [ $present = yes ]; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "system packages: no apt-get here (not Debian); going on without: $wanted"
    exit 0
fi
if [ "$(id -u)" != 0 ]; then
    echo "system packages: not root; going on without: apt-get install $wanted"
    exit 0
fi
log=$(mktemp)
if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $wanted; } >"$log" 2>&1; then
    echo "system packages: apt-get did not succeed; going on without: $wanted"
    tail -n 3 "$log"
fi
rm -f "$log"
