"""The command's first and last moments: Ctrl-C ends it there without Python's traceback.

Imports take a third of a second, and there is nothing yet, or nothing any more, to be put in order.
In between, Ctrl-C, SIGTERM and SIGHUP are `interruption`'s. What remains to Python itself is its own
start, before a program's first line (docs/talking.md).
"""

import _signal  # type: ignore[import-not-found]  # built in: `signal` reads five files before Ctrl-C is ours
import os


def _leave(number: int = _signal.SIGINT, *_: object) -> None:
    os._exit(128 + number)


def _leave_at_ctrl_c() -> None:
    """End the process at Ctrl-C, unless that is ignored (nohup): then it stays so."""
    if _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, _leave)


def run() -> None:
    """Run the command, the process's first act after Python's own start."""
    _leave_at_ctrl_c()
    import signal

    from vc4lab import interruption
    from vc4lab.cli.main import run as commands
    from vc4lab.cli.memory_limit import watch_numpy

    try:
        if signal.getsignal(signal.SIGINT) is _leave:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        interruption.install()
        watch_numpy()
        commands()
    except KeyboardInterrupt as ended:
        _leave(getattr(ended, "number", signal.SIGINT))
    finally:
        interruption.uninstall()
        _leave_at_ctrl_c()
