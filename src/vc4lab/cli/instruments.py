"""What `boot` hangs on a machine besides its serial line: the debugger's port and so on."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from vc4lab.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from vc4lab.cli.session import Settings
    from vc4lab.soc.machine import Machine


class InstrumentError(Exception):
    """An instrument cannot be had; the text is for the person."""

    def __init__(self, text: str, code: ExitCode) -> None:
        super().__init__(text)
        self.code = code


class Instruments:
    """The instruments of one run; `close()` takes them off again."""

    def __init__(self, settings: Settings, machine: Machine, tell: Callable[[str], None]) -> None:
        self._settings = settings
        self._machine = machine
        self._tell = tell
        self._stack = ExitStack()

    def attach(self) -> None:
        """Hang on what the settings ask for. Raises InstrumentError."""
        try:
            self._debugger()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Take everything off."""
        self._stack.close()

    def _debugger(self) -> None:
        settings = self._settings
        if settings.gdb is None:
            return
        from vc4lab.soc.gdb_server import GdbServer

        try:
            server = GdbServer(self._machine, settings.gdb, wait=settings.gdb_wait, tell=self._tell)
        except OSError as error:
            text = f"vc4lab: CLI-004: port {settings.gdb}: {error.strerror or error}"
            raise InstrumentError(text, ExitCode.BAD_INPUT) from None
        self._stack.callback(server.close)
        if not settings.gdb_wait:
            self._tell(f"debugger: target remote :{server.port}")
