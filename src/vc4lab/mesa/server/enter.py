"""Starts a program with a /tmp of its own: a process of its own, run as a file, without imports.

    python -I -S enter.py DESCRIPTOR FOLDER VISIBLE… -- PROGRAM ARGUMENTS…

FOLDER becomes /tmp for the program, in a mount namespace of its own; what is VISIBLE below the real
/tmp stays so. What fails is reported through DESCRIPTOR as text; it closes when the program runs.
"""

import ctypes
import os
import signal
import sys

NEW_NAMESPACE, NEW_USER = 0x00020000, 0x10000000
BIND, PRIVATE, RECURSIVE = 4096, 1 << 18, 16384
TMP = "/tmp"


def fail(descriptor: int, what: str, number: int) -> None:
    """Report an error, and end."""
    os.write(descriptor, f"{what}: {os.strerror(number)}".encode())
    os._exit(127)


def own_namespace(library: ctypes.CDLL) -> None:
    """A mount namespace; as a user inside of a user namespace. Raises OSError."""
    user, group = os.geteuid(), os.getegid()
    if user == 0 and library.unshare(NEW_NAMESPACE) == 0:
        return
    if library.unshare(NEW_USER | NEW_NAMESPACE):
        raise OSError(ctypes.get_errno(), "")
    with open("/proc/self/setgroups", "w") as file:
        file.write("deny")
    with open("/proc/self/uid_map", "w") as file:
        file.write(f"{user} {user} 1")
    with open("/proc/self/gid_map", "w") as file:
        file.write(f"{group} {group} 1")


def mount(library: ctypes.CDLL, source: str, target: str, flags: int) -> None:
    """mount(2). Raises OSError."""
    if library.mount(source.encode(), target.encode(), None, ctypes.c_ulong(flags), None):
        raise OSError(ctypes.get_errno(), target)


def replace_tmp(library: ctypes.CDLL, folder: str, visible: list[str]) -> None:
    """Put the folder over /tmp, and what stays visible into it. Raises OSError."""
    here = os.getcwd()
    held = [(path, os.open(path, os.O_PATH)) for path in visible if os.path.exists(path)]
    mount(library, "none", "/", PRIVATE | RECURSIVE)
    mount(library, folder, TMP, BIND | RECURSIVE)
    for path, descriptor in held:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            os.makedirs(path, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDONLY, 0o600))
        mount(library, f"/proc/self/fd/{descriptor}", path, BIND | RECURSIVE)
        os.close(descriptor)
    os.chdir(here)


def main() -> None:
    """Enter, and become the program."""
    # Its parent had them blocked until it could handle them.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    descriptor, folder = int(sys.argv[1]), sys.argv[2]
    end = sys.argv.index("--")
    visible, program = sys.argv[3:end], sys.argv[end + 1 :]
    os.set_inheritable(descriptor, False)
    if folder:
        library = ctypes.CDLL(None, use_errno=True)
        try:
            own_namespace(library)
            replace_tmp(library, folder, visible)
        except OSError as error:
            fail(descriptor, "N", error.errno or 0)
    try:
        os.execvp(program[0], program)
    except OSError as error:
        fail(descriptor, "P", error.errno or 0)


if __name__ == "__main__":
    main()
