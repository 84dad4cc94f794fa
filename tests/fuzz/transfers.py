"""DMA control blocks of any kind, in chains and circles, on all channels at once."""

import os
import random
import struct
import tempfile
from pathlib import Path
from typing import Any

from tests.fuzz.fuzzer import Fuzzer, Plan, fuzzer, word

from vc4lab.diagnostics import Reporter
from vc4lab.soc.machine import Machine

_HALT = bytes.fromhex("feffffea")
_DMA = 0x7000
_BLOCKS = 0x100000
_PLACES = (_BLOCKS, 0x200000, 0x3FFFFFF0, 0, 0x8000, 0x7E007000, 0x7E201000, 0x7E215040, 0x7E20C018,
           0x7E203004, 0x7E204004, 0x7E300020, 0x7E00B880, 0x7EC00000)  # fmt: skip
_SECONDS = 0.002


@fuzzer
class TransferFuzzer(Fuzzer):
    """Control blocks (the edits), linked at random, started on some channels."""

    name = "dma"
    quick = 10
    share = 20

    def plan(self, rng: random.Random) -> Plan:
        count = rng.choice((1, 2, 4, 8))
        edits: list[Any] = []
        for _ in range(count):
            source, dest = (self._address(rng) for _ in range(2))
            length = rng.choice((0, 1, 4, 64, 4096, rng.randrange(1 << 16), word(rng)))
            following = rng.choice((
                0, *(_BLOCKS + 32 * n for n in range(count)), _BLOCKS + 4, 0x7E007000, word(rng),
            ))  # fmt: skip
            info = word(rng) if rng.random() < 0.5 else rng.getrandbits(32) & 0x3FF07FB
            edits.append((info, source, dest, length, word(rng), following, 0, 0))
        channels = rng.sample(range(16), rng.choice((1, 2, 16)))
        return Plan("dma", tuple(edits), {"channels": channels}, 32 * count)

    def _address(self, rng: random.Random) -> int:
        if rng.random() < 0.2:
            return word(rng)
        return rng.choice(_PLACES) + rng.choice((0, 0, 0, 1, 4, 16)) | rng.choice((0, 0xC0000000))

    def run(self, plan: Plan) -> None:
        os.environ["VC4LAB_GUARD"] = "1"
        with tempfile.TemporaryDirectory(prefix="vc4lab-fuzz-") as folder:
            image = Path(folder) / "kernel7.img"
            image.write_bytes(_HALT)
            machine = Machine(image, reporter=Reporter())
        for index, block in enumerate(plan.edits):
            machine.memory.write(_BLOCKS + 32 * index, struct.pack("<8I", *block))
        machine.bus.write(_DMA + 0xFF0, 4, 0xFFFF)
        for number, channel in enumerate(plan.options["channels"]):
            base = 0xE05000 if channel == 15 else _DMA + 0x100 * channel
            first = _BLOCKS + 32 * (number % max(len(plan.edits), 1))
            machine.bus.write(base + 4, 4, first | 0xC0000000)
            machine.bus.write(base, 4, 1)
        machine.run(seconds=_SECONDS)
        for channel in plan.options["channels"]:
            base = 0xE05000 if channel == 15 else _DMA + 0x100 * channel
            for offset in range(0, 0x24, 4):
                assert 0 <= machine.bus.read(base + offset, 4) < 1 << 32
