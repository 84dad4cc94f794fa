"""What runs in the guest: the first program, and one that starts programs for the host.

The host sends lines on the serial line: one that begins with "+" is more of a command, "!" runs
what has come. The guest answers in between with strings that terminals do not show (APC, ECMA-48).
"""

from __future__ import annotations

START, END = "\033_vc4lab ", "\033\\"
"""What stands around an answer: `ready`, or `exit` with a number."""
READY, EXIT = "ready", "exit"

INIT = b"""#!/usr/bin/busybox sh
export PATH=/usr/bin:/usr/sbin HOME=/root
busybox mount -t proc proc /proc
/usr/bin/busybox --install -s /usr/bin
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
while read -r module; do insmod "$module"; done < /vc4lab/modules
cd /root
line=$(cat /sys/class/tty/console/active)
exec setsid sh -c "exec /vc4lab/listen <>/dev/${line##* } >&0 2>&0"
"""

LISTENER = b"""#!/usr/bin/busybox sh
export HOME=/root TERM=vt102 XDG_RUNTIME_DIR=/run PS1='# '
say() { printf '\\033_vc4lab %s\\033\\\\' "$1"; }
trap : INT QUIT TSTP
stty -echo -isig
say ready
command=
while IFS= read -r line; do
  case $line in
  +*) command="$command${line#+}" ;;
  !)
    stty sane
    busybox sh -c "$command"
    code=$?
    stty sane -echo -isig
    command=
    say "exit $code"
    ;;
  esac
done
"""
