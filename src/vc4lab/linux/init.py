"""Holds the guest's programs: the first program, and one that starts programs for the host.

The host sends lines on the serial line: one that begins with "+" is more of a command, "/" is a
newline in it, "!" runs what has come. The guest answers in between with strings that terminals do
not show (APC, ECMA-48).
"""

from __future__ import annotations

NO_SHELL = "vc4lab.shell=no"
"""On the kernel's line: the keyboard is not a terminal. A root that cannot be mounted is the end
then, by a panic, since a shell would wait for ever."""

START, END = "\033_vc4lab ", "\033\\"
"""The strings around an answer: `ready`, or `exit` with a number."""
READY, EXIT = "ready", "exit"

INIT = b"""#!/usr/bin/busybox sh
export PATH=/usr/bin:/usr/sbin HOME=/root
busybox mount -t proc proc /proc
/usr/bin/busybox --install -s /usr/bin
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
load() { while read -r module; do insmod "$module"; done < "$1"; }
load /vc4lab/modules
root= mode=ro init=/sbin/init type= shell=
for word in $(cat /proc/cmdline); do
  case $word in
  root=*) root=${word#root=} ;;
  rootfstype=*) type="-t ${word#rootfstype=}" ;;
  init=*) init=${word#init=} ;;
  rw|ro) mode=$word ;;
  vc4lab.shell=no) shell=no ;;
  esac
done
if [ -n "$root" ]; then
  load /vc4lab/card-modules
  tries=0
  while [ $tries -lt 100 ]; do
    case $root in
    *=*) device=$(findfs "$root" 2>/dev/null) ;;
    *) device=$root ;;
    esac
    [ -b "$device" ] && break
    tries=$((tries + 1))
    usleep 100000
  done
  mkdir /root.card
  if mount $type -o "$mode" "$device" /root.card; then
    if [ -x "/root.card$init" ] || [ -L "/root.card$init" ]; then
      for folder in dev proc sys; do mount --move /$folder /root.card/$folder; done
      exec switch_root /root.card "$init"
    fi
    echo "vc4lab: $root has no $init"
  else
    echo "vc4lab: $root cannot be mounted; the card's partitions:"
    cat /proc/partitions
  fi
fi
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
cd /root
line=$(cat /sys/class/tty/console/active)
console="/dev/${line##* }"
if [ -n "$root" ]; then
  if [ "$shell" != no ]; then
    echo "vc4lab: a shell in the RAM disk follows; exit halts"
    setsid sh -c "PS1='# ' exec sh -i <>$console >&0 2>&0"
    exec poweroff -f
  fi
  echo "vc4lab: without its root, and without a terminal, nothing can go on"
  exit 1
fi
exec setsid sh -c "exec /vc4lab/listen <>$console >&0 2>&0"
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
  /) command="$command
" ;;
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
