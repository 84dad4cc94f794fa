"""The command's first and last moments: Ctrl-C ends it there without Python's traceback.

Imports take a third of a second, and there is nothing yet, or nothing any more, to be put in order.
In between, Ctrl-C, SIGTERM and SIGHUP are `interruption`'s.
"""

from __future__ import annotations

import os
import signal


def _leave(*_: object) -> None:
    os._exit(128 + signal.SIGINT)


def _leave_at_ctrl_c() -> None:
    """End the process at Ctrl-C, unless that is ignored (nohup): then it stays so."""
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_DFL):
        signal.signal(signal.SIGINT, _leave)


def run() -> None:
    """The program's entry point."""
    _leave_at_ctrl_c()
    from vc4lab import interruption
    from vc4lab.cli.main import run as commands
    from vc4lab.cli.memory_limit import watch_numpy

    try:
        if signal.getsignal(signal.SIGINT) is _leave:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        interruption.install()
        watch_numpy()
        commands()
    except KeyboardInterrupt:
        _leave()
    finally:
        interruption.uninstall()
        _leave_at_ctrl_c()
