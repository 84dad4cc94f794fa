"""Bundled examples, each with one thing changed between the program and the board.

A change sees what a newcomer's source would have had otherwise: records of both lists, the shader record,
vertices and programs, the messages to the firmware, the writes of registers.
"""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vc4lab.diagnostics import Reporter
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import parse_list
from vc4lab.records.shader import GlShaderRecord, NvShaderRecord
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.machine import Machine
from vc4lab.soc.result import RunResult

EXAMPLES = Path(__file__).parents[2] / "examples"
BPOS = 0x30C
CT0EA, CT1EA, CT0CA, CT1CA = 0x108, 0x10C, 0x110, 0x114
LISTS = {CT0EA: CT0CA, CT1EA: CT1CA}
"""The register that starts a list, and the one that has its beginning."""
FREE = 0x0200_0000
"""Memory that no example uses."""
UNCACHED = 0xC000_0000
PROPERTIES = 8
"""Channel of the mailbox."""
NOP, NV_SHADER, GL_SHADER = 1, 65, 64

Change = Callable[["Scene"], object]


def of_tag(place: int, value: int) -> Callable[[list[int]], None]:
    """A tag's words with another one at a place."""

    def change(words: list[int]) -> None:
        words[place] = value

    return change


class Scene:
    """A machine with an example whose lists are changed when the program starts them.

    Attributes
    ----------
    lost
        Offsets of V3D registers whose writes do not arrive.
    other
        By offset: what is written instead of a value.
    """

    def __init__(self, example: str, change: Change) -> None:
        self.reporter = Reporter()
        self.serial = SerialPort()
        self.machine = Machine(EXAMPLES / example / "sdcard", reporter=self.reporter, serial=self.serial)
        self.memory = self.machine.memory
        self.lost: set[int] = set()
        self.other: dict[int, Callable[[int], int]] = {}
        self.values: dict[int, int] = {}
        self._edits: list[tuple[int, Callable[[Any], bytes]]] = []
        self._steps: list[Change] = []
        self._free = FREE
        self.machine.listeners.v3d_made.subscribe(lambda event: self._hold(event.v3d))
        change(self)

    def run(self, seconds: float | None = None) -> RunResult:
        """Run to the program's end."""
        return self.machine.run(seconds=seconds)

    # -- the lists ---------------------------------------------------------------------------------

    def change(self, record: int, **fields: Any) -> None:
        """Records of a kind have other fields, in the lists that have them."""

        def changed(found: Any) -> bytes:
            return bytes([record]) + found.payload.replace(**fields).to_bytes()

        self._edits.append((record, changed))

    def remove(self, record: int) -> None:
        """Records of a kind are not there."""
        self._edits.append((record, lambda found: bytes([NOP]) * found.size))

    def replace(self, record: int, make: Callable[[Any], bytes]) -> None:
        """Records of a kind are other ones."""
        self._edits.append((record, make))

    def then(self, step: Change) -> None:
        """Something is done when the binning list starts, before the lists are changed."""
        self._steps.append(step)

    def put(self, data: bytes) -> int:
        """Bus address of bytes in free memory."""
        address = self._free
        self._free += -(-len(data) // 4096) * 4096
        self.memory.write(address, data)
        return address | UNCACHED

    def program(self, text: str) -> int:
        """Bus address of an assembled program."""
        return self.put(assemble(text).bytes)

    # -- shaders -----------------------------------------------------------------------------------

    def shader(self, **fields: int) -> None:
        """The NV or GL shader record has other fields."""

        def step(scene: Scene) -> None:
            kind, address = scene._shader()
            found = kind.from_bytes(scene.memory.read(address, kind.bit_width // 8))
            scene.memory.write(address, found.replace(**fields).to_bytes())

        self.then(step)

    def fragment(self, text: str) -> None:
        """The fragment program is another one."""
        code = self.program(text)
        self.shader(code=code, varyings=0)

    def shader_place(self) -> int:
        """Address of the shader record, once the binning list is there."""
        return self._shader()[1]

    def vertices(self, change: Callable[[list[float]], list[float]]) -> None:
        """NV vertices: x and y (in 1/16 pixel), z, 1/w and three varyings become others."""

        def step(scene: Scene) -> None:
            first = scene.memory.u32(scene.shader_place() + 12)
            for number in range(3):
                place = first + 24 * number
                old = list(struct.unpack("<hh5f", scene.memory.read(place, 24)))
                x, y, *rest = change(old)
                scene.memory.write(place, struct.pack("<hh5f", int(x), int(y), *rest))

        self.then(step)

    def positions(self, change: Callable[[list[float]], list[float]]) -> None:
        """The positions of the GL example (three floats each) become others."""

        def step(scene: Scene) -> None:
            first = scene.memory.u32(scene.shader_place() + 36)
            for number in range(3):
                place = first + 12 * number
                old = list(struct.unpack("<3f", scene.memory.read(place, 12)))
                scene.memory.write(place, struct.pack("<3f", *change(old)))

        self.then(step)

    def _shader(self) -> tuple[Any, int]:
        """The class and the address of the shader record."""
        for one in self._records(CT0EA):
            if one.id in (NV_SHADER, GL_SHADER):
                return (NvShaderRecord if one.id == NV_SHADER else GlShaderRecord), one.payload.address
        raise LookupError("no shader record")

    # -- the firmware ------------------------------------------------------------------------------

    def message(self, tag: int, change: Callable[[list[int]], None]) -> None:
        """The words of a property tag's value become others before the firmware sees them."""
        channels = self.machine.mailbox.channels
        heard = channels[PROPERTIES]

        def edit(data: int) -> None:
            at = data + 8
            while at < data + self.memory.u32(data) and self.memory.u32(at):
                size = self.memory.u32(at + 4)
                if self.memory.u32(at) == tag:
                    words = [self.memory.u32(at + 12 + 4 * n) for n in range(size // 4)]
                    change(words)
                    for number, word in enumerate(words):
                        self.memory.set_u32(at + 12 + 4 * number, word)
                at += 12 + size

        def answer(data: int) -> int | None:
            edit(data)
            return heard(data)

        channels[PROPERTIES] = answer

    # -- registers ---------------------------------------------------------------------------------

    def _hold(self, v3d: Any) -> None:
        real = v3d.write

        def write(offset: int, value: int) -> None:
            self.values[offset] = value
            if offset in LISTS and offset not in self.lost:
                if offset == CT0EA:
                    for step in self._steps:
                        step(self)
                for one in list(self._records(offset)):
                    for number, make in self._edits:
                        if one.id == number:
                            self.memory.write(one.address, make(one))
            if offset not in self.lost:
                real(offset, self.other[offset](value) if offset in self.other else value)

        v3d.write = write

    def _records(self, register: int) -> Any:
        start, end = self.values[LISTS[register]], self.values[register]
        return parse_list(self.memory.read, start, end)
