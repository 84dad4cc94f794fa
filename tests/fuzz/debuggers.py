"""GDB clients that send nonsense, half packets and floods, and vanish in the middle."""

import contextlib
import os
import random
import socket
import tempfile
import threading
from pathlib import Path
from typing import Any

from tests.fuzz.fuzzer import Fuzzer, Plan, fuzzer

from vc4lab.diagnostics import Reporter
from vc4lab.soc.debug.gdb_packets import PACKET_LIMIT, frame
from vc4lab.soc.debug.gdb_server import GdbServer
from vc4lab.soc.machine import Machine

_KERNEL = Path(__file__).parents[1] / "soc" / "kernels" / "multicore.img"
_COMMANDS = (
    "?", "g", "p0", "pf", "p19", "P0=00000000", "m8000,40", "m3f201000,20", "mffffffffffffffff,8",
    "M8000,4:feffffea", "X9000,4:abcd", "Z0,8010,4", "z0,8010,4", "Z2,100000,8", "Z3,3f201000,4",
    "Z4,0,ffffffff", "z2,100000,8", "c", "s", "vCont;c", "vCont;s:1;c", "vCont?", "Hg2", "Hc0",
    "T3", "qSupported:multiprocess+", "qXfer:features:read:target.xml:0,3fff", "qfThreadInfo",
    "qRcmd,696e666f", "QStartNoAckMode", "G00", "D", "k", "vKill;1", "qC", "H", "", "m", "Z", "P",
    "X8000,ffffffff:", "M0,1:zz", "p-1", "vCont;", "vCont;x", "qXfer:features:read:target.xml:-1,1",
)  # fmt: skip
_SECONDS = 0.002


@fuzzer
class DebuggerFuzzer(Fuzzer):
    """Each edit is a portion of bytes of one client; the machine must come to its end."""

    name = "gdb"
    quick = 6
    share = 20

    def plan(self, rng: random.Random) -> Plan:
        edits: list[Any] = []
        for _ in range(rng.choice((1, 3, 8, 20))):
            edits.append(self._portion(rng))
        return Plan("gdb", tuple(edits), {}, sum(min(len(e), 64) for e in edits) + 1)

    def _portion(self, rng: random.Random) -> bytes:
        kind = rng.random()
        command = rng.choice(_COMMANDS).encode()
        if kind < 0.5:
            return frame(command)
        if kind < 0.6:
            damaged = bytearray(frame(command))
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            return bytes(damaged)
        if kind < 0.7:
            return frame(command)[: rng.randrange(1, 4 + len(command))]
        if kind < 0.8:
            mixed = bytearray(command + rng.randbytes(rng.choice((1, 4, 40))))
            rng.shuffle(mixed)
            return frame(bytes(mixed))
        if kind < 0.9:
            return rng.choice((b"\x03", b"-", b"+++", b"$", b"#00", rng.randbytes(200)))
        size = rng.choice((PACKET_LIMIT, 3 * PACKET_LIMIT, 5 << 16))
        return rng.choice((b"$", b"")) + rng.choice((b"m", b"$", b"}", b"\0")) * size

    def run(self, plan: Plan) -> None:
        os.environ["VC4LAB_GUARD"] = "1"
        with tempfile.TemporaryDirectory(prefix="vc4lab-fuzz-") as folder:
            image = Path(folder) / "kernel7.img"
            image.write_bytes(_KERNEL.read_bytes())
            machine = Machine(image, reporter=Reporter())
        server = GdbServer(machine, 0)
        client = threading.Thread(target=self._talk, args=(server.port, plan.edits))
        client.start()
        try:
            machine.run(seconds=_SECONDS)
        finally:
            server.close()
            client.join(20)
        assert not client.is_alive()

    def _talk(self, port: int, portions: tuple[bytes, ...]) -> None:
        """One client sends everything, reads what comes and vanishes; another one says goodbye.

        Without that, a machine that waits for its debugger would do so for ever, as it should.
        """
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as line:
            for portion in portions:
                line.sendall(portion)
                line.settimeout(0.002)
                with contextlib.suppress(TimeoutError):
                    line.recv(1 << 16)
                line.settimeout(5)
        with contextlib.suppress(ConnectionRefusedError):
            while not self._detach(port):
                pass

    def _detach(self, port: int) -> bool:
        """Whether the server has taken the client and let it go; no server: an exception."""
        with contextlib.ExitStack() as stack:
            try:
                line = stack.enter_context(socket.create_connection(("127.0.0.1", port), 5))
            except ConnectionResetError:  # the server stops listening just now
                return False
            answered = False
            with contextlib.suppress(OSError):
                line.sendall(frame(b"D"))
                while line.recv(1 << 16):
                    answered = True
            return answered
