#!/bin/sh
# Installs Debian packages for one purpose. Nothing here is required: what needs them says so and
# goes on without.
#   system-packages.sh           cross compilers, debugger, and programs that the tests run
#   system-packages.sh gallery   glmark2 on llvmpipe under Xvfb, to compare with
set -eu

# Each line: a program, and a package that is wanted where the program is not there.
case ${1-tests} in
tests)
    table="
        arm-none-eabi-gcc                           gcc-arm-none-eabi
        arm-none-eabi-as                            binutils-arm-none-eabi
        aarch64-linux-gnu-gcc                       gcc-aarch64-linux-gnu
        aarch64-linux-gnu-as                        binutils-aarch64-linux-gnu
        gdb-multiarch                               gdb-multiarch
        evtest                                      evtest
        kmscube                                     kmscube
        /usr/libexec/libinput/libinput-list-devices libinput-tools
        /usr/libexec/libinput/libinput-debug-events libinput-tools
        /usr/libexec/installed-tests/SDL2/checkkeys libsdl2-tests
        chromium                                    chromium
        chromedriver                                chromium-driver
    "
    ;;
gallery)
    table="
        Xvfb        xvfb
        glmark2-es2 glmark2-es2-x11
        apitrace    apitrace
        eglretrace  apitrace
        glmark2-es2 libgl1-mesa-dri
        glmark2-es2 libegl1
        glmark2-es2 libgles2
    "
    ;;
*)
    echo "usage: $0 [tests | gallery]" >&2
    exit 2
    ;;
esac

missing=
set -- $table
while [ $# -gt 0 ]; do
    if ! command -v "$1" >/dev/null 2>&1; then
        case " $missing " in
        *" $2 "*) ;;
        *) missing="$missing $2" ;;
        esac
    fi
    shift 2
done
missing=${missing# }
if [ -z "$missing" ]; then
    exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
    echo "system packages: no apt-get here (not Debian); going on without: $missing"
    exit 0
fi
if [ "$(id -u)" != 0 ]; then
    echo "system packages: not root; going on without: apt-get install $missing"
    exit 0
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
install_packages() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >>"$log" 2>&1
}
apt-get update >>"$log" 2>&1 || true
if ! install_packages $missing; then
    # One that the archive does not have, or that cannot be installed, does not cost the others.
    failed=
    for package in $missing; do
        install_packages "$package" || failed="$failed $package"
    done
    if [ -n "$failed" ]; then
        echo "system packages: apt-get did not succeed; going on without:$failed"
        tail -n 3 "$log"
    fi
fi
