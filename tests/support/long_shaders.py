"""Shaders that make so many rounds, or never end."""

import struct

import pytest
from tests.support.frames import ARRAY, Frame, triangle

from vc4lab.qpu.isa.encoding import words_of
from vc4lab.qpu.run.wide import WideInterpreter
from vc4lab.qpu.text.assembler import assemble
from vc4lab.records.control import build
from vc4lab.v3d.reference import draw as reference_draw

ENGINES = ("jit", "interpreter")
BLUE = 0xFFFF0000
OTHERS = ((20, 100), (100, 100), (64, 20))

FRAGMENT_LOOP = """
    mov r1, unif
    mov r0, 0
loop:
    sub r1, r1, 1
    sub.setf -, r1, 0
    brr.any_zc -, loop
    add r0, r0, 1
    nop
    nop
    nop ; nop ; sbwait
    mov tlbc, unif ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""
FRAGMENT_WORDS = words_of(assemble(FRAGMENT_LOOP).bytes)
ROUND = 6
"""Instructions of a round."""


def loop(frame: Frame, rounds: int, colour: int, corners: tuple[tuple[float, float], ...]) -> bytes:
    """A triangle whose fragment shader makes so many rounds (0: 2^32 of them) before its colour."""
    job = frame.job
    if "loop" not in frame.__dict__:
        frame.__dict__["loop"] = job.program(FRAGMENT_LOOP)
    uniforms = job.put(struct.pack("<II", rounds, colour))
    vertices = job.put(triangle(*corners))
    data = struct.pack("<BBBBIII", 1, 12, 0, 0, frame.__dict__["loop"], uniforms, vertices)
    return build(65, address=job.put(data)) + ARRAY


def codes(frame: Frame) -> list[str]:
    """Of the messages that a user would see."""
    return [item.code for item in frame.reporter.items]


def counted_steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many instructions were interpreted, as the only element."""
    reference_draw._terminations.clear()  # of frames that are not collected yet
    real, done = WideInterpreter.step, [0]

    def step(self: WideInterpreter) -> bool:
        done[0] += 1
        return real(self)

    monkeypatch.setattr(WideInterpreter, "step", step)
    return done
