"""The command's first and last moments: Ctrl-C ends it there without Python's traceback.

Imports take a third of a second, and there is nothing yet, or nothing any more, to be put in order.
In between, Ctrl-C is a KeyboardInterrupt.
"""

from __future__ import annotations

import os
import signal


def _leave(*_: object) -> None:
    os._exit(128 + signal.SIGINT)


def _on_interrupt(leaves: bool) -> None:
    """What Ctrl-C does from now on; where it was ignored (nohup), it stays so."""
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _leave):
        signal.signal(signal.SIGINT, _leave if leaves else signal.default_int_handler)


def run() -> None:
    """The program's entry point."""
    _on_interrupt(leaves=True)
    from vc4lab.cli.main import run as commands

    try:
        _on_interrupt(leaves=False)
        commands()
    except KeyboardInterrupt:
        _leave()
    finally:
        _on_interrupt(leaves=True)
