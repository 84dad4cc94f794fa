"""Damaged SD-card images: the firmware's reader, and a machine that boots from them."""

import os
import random
import struct
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.fuzz.fuzzer import INTERESTING, Fuzzer, Plan, fuzzer, scribble, size_of, word
from tests.support.card_images import SECTOR, make_card

from vc4lab.diagnostics import Reporter
from vc4lab.soc.boot.firmware import BootError
from vc4lab.soc.machine import Machine
from vc4lab.soc.media.fat import BadCard, FatCard

_HALT = bytes.fromhex("feffffea")
_FILES = {
    "kernel7.img": _HALT * 700,
    "config.txt": b"kernel=kernel7.img\ninitramfs initrd followkernel\ninclude more.txt\n",
    "more.txt": b"gpu_mem=64\n",
    "initrd": bytes(range(256)) * 40,
    "a_long_file_name.bin": b"long" * 400,
}
_EMMC = 0x300000
_MAX_TIME = 0.002


@cache
def _image(fat32: bool, partition: bool) -> bytes:
    return make_card(_FILES, fat32, partition)


def _places(image: bytes) -> list[tuple[int, int]]:
    """Where damage hurts: partition table, boot sector, allocation table, root folder, data."""
    volume = 0 if image[0] == 0xEB else 8 * SECTOR
    (reserved,) = struct.unpack_from("<H", image, volume + 14)
    small, large = struct.unpack_from("<H", image, volume + 22)[0], 0
    if not small:
        (large,) = struct.unpack_from("<I", image, volume + 36)
    fat = volume + reserved * SECTOR
    root = fat + (small or large) * SECTOR
    return [(0, SECTOR), (volume, volume + 90), (fat, fat + 400), (root, root + 512),
            (0, len(image))]  # fmt: skip


@fuzzer
class CardFuzzer(Fuzzer):
    """Images with damaged tables, chains in circles, and images that are cut."""

    name = "cards"
    quick = 12
    share = 30

    def plan(self, rng: random.Random) -> Plan:
        layout = (rng.random() < 0.5, rng.random() < 0.7)
        image = _image(*layout)
        edits: list[Any] = []
        for _ in range(rng.choice((0, 1, 2, 4))):
            start, end = rng.choice(_places(image))
            if rng.random() < 0.5:
                edits += scribble(rng, start, image[start:end])
            else:
                value = rng.choice(INTERESTING) if rng.random() < 0.5 else rng.randrange(70_010)
                at = rng.randrange(start, max(end - 4, start + 1))
                width = rng.choice((1, 2, 4))
                edits.append((at, (value & 0xFFFFFFFF).to_bytes(4, "little")[:width]))
        cut = rng.randrange(len(image)) if rng.random() < 0.2 else None
        accesses = [(rng.choice((0, 4, 8, 12, 32, 36, 40, 44, 48)), word(rng)) for _ in range(20)]
        options = {"layout": layout, "cut": cut, "accesses": accesses}
        return Plan("card", tuple(edits), options, size_of(edits) + 1)

    def run(self, plan: Plan) -> None:
        image = bytearray(_image(*plan.options["layout"]))
        for at, new in plan.edits:
            image[at : at + len(new)] = new
        if plan.options["cut"] is not None:
            del image[plan.options["cut"] :]
        os.environ["VC4LAB_GUARD"] = "1"
        with tempfile.TemporaryDirectory(prefix="vc4lab-fuzz-") as folder:
            path = Path(folder) / "card.img"
            path.write_bytes(image)
            self._read_all(path)
            self._boot(path, plan.options["accesses"])
            assert path.read_bytes() == image, "the image was written"

    def _read_all(self, path: Path) -> None:
        try:
            card = FatCard(path)
            for name in (*_FILES, "no such file", "a/b/../c"):
                if card.find(name) is not None:
                    assert len(card.read(name, 1 << 20)) <= min(card.size(name), 1 << 20)
        except BadCard:
            return

    def _boot(self, path: Path, accesses: list[tuple[int, int]]) -> None:
        try:
            machine = Machine(path, reporter=Reporter())
        except BootError:
            return
        for offset, value in accesses:
            machine.bus.write(_EMMC + offset, 4, value)
            machine.bus.read(_EMMC + offset, 4)
        machine.run(seconds=_MAX_TIME)
