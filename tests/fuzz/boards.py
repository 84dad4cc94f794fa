"""Cards, kernels and mailbox messages for the Pi."""

import os
import random
import shutil
import struct
import tempfile
from pathlib import Path
from typing import Any

from tests.fuzz.fuzzer import Fuzzer, Plan, fuzzer, scribble, word

from vc4lab.diagnostics import Reporter, StrictStop
from vc4lab.soc.boot.config_txt import KEYS
from vc4lab.soc.boot.firmware import BootError
from vc4lab.soc.machine import Machine
from vc4lab.soc.videocore.properties import tag_table

_KERNELS = Path(__file__).parents[1] / "soc" / "kernels"
_HALT = bytes.fromhex("feffffea")
_MAILBOX = 0xB880
_BUFFERS = (0, 0x10, 0x3AFFFFF0, 0x3EFFFFF0, 0x3F00B880, 0x3F201000, 0x3FC00000, 0x3FFFFFF0,
            0x40000080, 0x7E00B880, 0xC0100000, 0xFFFFFFF0)  # fmt: skip
"""Messages at the ends of RAM, in device registers and in aliases."""
_VALUES = ("0", "1", "-1", "4294967296", "0x", "0xffffffffffffffff", "99999999999999999999", "é", "=")


class _Card(Fuzzer):
    """Makes a folder with a kernel and a config.txt, and a machine from it."""

    def machine(self, image: bytes, config: bytes, strict: bool = False) -> Machine | None:
        os.environ["VC4LAB_GUARD"] = "1"
        folder = Path(tempfile.mkdtemp(prefix="vc4lab-fuzz-"))
        try:
            (folder / "kernel7.img").write_bytes(image)
            (folder / "config.txt").write_bytes(config)
            return Machine(folder, reporter=Reporter(strict))
        except BootError:
            return None
        finally:
            shutil.rmtree(folder)


@fuzzer
class KernelFuzzer(_Card):
    """Random and damaged programs, with random settings, for some milliseconds."""

    name = "kernels"
    quick = 8
    share = 40

    def plan(self, rng: random.Random) -> Plan:
        image = rng.choice(sorted(_KERNELS.glob("*.img")))
        data = image.read_bytes()
        edits: list[Any] = []
        units = 0
        kind = rng.random()
        if kind < 0.3:
            code = rng.randbytes(rng.choice((1, 3, 4, 64, 4096)))
            edits.append(("image", (0, code)))
            units += len(code)
        elif kind < 0.9 and data:
            changes = scribble(rng, 0, data)
            edits += [("image", change) for change in changes]
            units += sum(len(new) for _, new in changes)
        for _ in range(rng.choice((0, 1, 5, 20))):
            line = self._line(rng)
            edits.append(("line", line))
            units += len(line)
        return Plan(image.name, tuple(edits), {"strict": rng.random() < 0.1}, units)

    def _line(self, rng: random.Random) -> bytes:
        kind = rng.random()
        key = rng.choice(sorted(KEYS))
        if kind < 0.2:
            return rng.randbytes(rng.randrange(150)).replace(b"\n", b"")
        if kind < 0.3:
            return b"[" + rng.choice((b"pi2", b"all", b"none", b"", rng.randbytes(5))) + b"]"
        if key in ("kernel", "device_tree") and kind < 0.9:
            return key.encode() + b"=" + rng.choice((b"kernel7.img", b"/", b"..", b"\0", b"a" * 300))
        value = rng.choice((*_VALUES, str(word(rng)), hex(word(rng)), str(rng.randrange(100))))
        return f"{key}={value}".encode()

    def run(self, plan: Plan) -> None:
        image = bytearray((_KERNELS / plan.scene).read_bytes())
        lines = []
        for kind, edit in plan.edits:
            if kind == "line":
                lines.append(edit)
            else:
                image[edit[0] : edit[0] + len(edit[1])] = edit[1]
        try:
            machine = self.machine(bytes(image), b"\n".join(lines), plan.options["strict"])
            if machine is not None:
                machine.run(seconds=0.003)
                assert machine.screen.size
                assert machine.screen.image is None or machine.screen.image.size
        except StrictStop:
            assert plan.options["strict"]


@fuzzer
class MailboxFuzzer(_Card):
    """Messages with random tags, sizes and values; random register accesses of all devices."""

    name = "mailbox"
    quick = 40
    share = 40

    def __init__(self) -> None:
        self._machine: Machine | None = None
        self._owner = 0
        self._uses = 0

    def plan(self, rng: random.Random) -> Plan:
        tags = sorted(tag_table())
        edits: list[Any] = []
        units = 0
        for _ in range(rng.choice((1, 3, 10))):
            address = rng.choice((0x100000, 0x100000, *_BUFFERS, word(rng))) & 0xFFFFFFF0
            data = bytearray()
            for _ in range(rng.choice((1, 2, 6))):
                tag = rng.choice(tags) if rng.random() < 0.9 else word(rng)
                size = rng.choice((0, 4, 8, 12, 28, 40, 4, 8, word(rng)))
                values = [word(rng) if rng.random() < 0.6 else rng.randrange(800) for _ in range(7)]
                room = min(size, 28) & ~3
                data += struct.pack("<3I", tag, size, rng.choice((0, 0, size, word(rng))))
                data += struct.pack("<7I", *values)[:room]
            total = rng.choice((len(data) + 12, len(data) + 12, word(rng)))
            message = struct.pack("<2I", total & 0xFFFFFFFF, rng.choice((0, 0, word(rng)))) + data
            if rng.random() < 0.1:
                message = rng.randbytes(80)
            channel = rng.choice((8, 8, 8, 1, rng.randrange(16)))
            edits.append((address, message + bytes(4), channel))
            units += len(message)
        return Plan("mailbox", tuple(edits), {}, units)

    def run(self, plan: Plan) -> None:
        self._uses += 1
        if self._owner != os.getpid() or self._machine is None or self._uses % 50 == 0:
            self._owner = os.getpid()
            self._machine = self.machine(_HALT, b"")
        machine = self._machine
        assert machine is not None
        for address, message, channel in plan.edits:
            machine.memory.write(address, message)
            machine.bus.write(_MAILBOX + 0x20, 4, address & 0xFFFFFFF0 | channel)
            machine.bus.read(_MAILBOX + 0x18, 4)
            machine.bus.read(_MAILBOX, 4)
        picture = machine.screen.image
        assert picture is None or picture.size


@fuzzer
class BusFuzzer(_Card):
    """Random reads and writes all over the peripherals of a Pi."""

    name = "bus"
    quick = 20
    share = 20

    def plan(self, rng: random.Random) -> Plan:
        edits = []
        bases = (0xB000, 0xB200, 0xB400, 0xB880, 0x3000, 0x100000, 0x101000, 0x104000, 0x200000,
                 0x201000, 0x215000, 0x600000, 0xC00000, 0x980000, 0x300000)  # fmt: skip
        for _ in range(rng.choice((10, 100, 300))):
            offset = rng.choice(bases) + rng.randrange(0, 0x100)
            if rng.random() < 0.8:
                offset &= ~3
            if rng.random() < 0.05:
                offset = rng.randrange(0x1000000)
            size = rng.choice((4, 4, 4, 1, 2))
            value = word(rng) if rng.random() < 0.7 else 1 << rng.randrange(32)
            edits.append((offset, size, None if rng.random() < 0.4 else value & (1 << 8 * size) - 1))
        return Plan("bus", tuple(edits), {}, 4 * len(edits))

    def run(self, plan: Plan) -> None:
        machine = self.machine(_HALT, b"fake_vsync_isr=1")
        assert machine is not None
        for offset, size, value in plan.edits:
            if value is None:
                assert 0 <= machine.bus.read(offset, size) < 1 << 8 * size
            else:
                machine.bus.write(offset, size, value)
        machine.run(seconds=0.001)
