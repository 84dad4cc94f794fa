"""Tables of exception vectors that are not aligned: a message, and the address that a board takes."""

import struct

import pytest

from vc4lab.soc.machine import Machine

AGAIN32, AGAIN64 = 0xEAFFFFFE, 0x14000000
VBAR, HVBAR = 0xEE0C0F10, 0xEE8C0F10


def run(tmp_path, name, board, *words, **options) -> Machine:
    (tmp_path / name).write_bytes(struct.pack(f"<{len(words)}I", *words))
    machine = Machine(tmp_path, board, **options)
    machine.run(seconds=0.001)
    return machine


def told(machine: Machine) -> list[str]:
    return [item.message for item in machine.reporter.items if item.code == "SOC-116"]


@pytest.mark.parametrize(
    ("offset", "kept"), [(0x100, 0x80000), (0x7FF, 0x80000), (0x800, 0x80800), (0, 0x80000)]
)
def test_aarch64(tmp_path, offset, kept):
    """The low eleven bits are no part of the register."""
    words = (0xD2A00100, 0x91000000 | offset << 10, 0xD51CC000, 0xD53CC001, AGAIN64)
    machine = run(tmp_path, "kernel8.img", "pi3", *words)
    assert machine.cpu.register(1) == kept
    assert len(told(machine)) == (offset % 2048 != 0)
    if offset == 0x100:
        assert "VBAR_EL2 gets 0x00080100" in told(machine)[0]
        assert "exceptions go to the table at 0x00080000" in told(machine)[0]


def test_exceptions_go_where_a_board_takes_them(tmp_path):
    """The handler at the table's own place is not reached: the one 0x100 bytes before it is."""
    vectors = {0x200 // 4: (0x52800021, 0xD69F03E0), 0x300 // 4: (0x52800041, 0xD69F03E0)}  # w1 = 1, 2; eret
    words = [0xD503201F] * 256
    words[:6] = [0xD2A00100, 0x91040000, 0xD51CC000, 0xD2800001, 0xD4000001, AGAIN64]  # svc 0
    for at, code in vectors.items():
        words[at : at + 2] = code
    assert run(tmp_path, "kernel8.img", "pi3", *words).cpu.register(1) == 1
    forgiving = run(tmp_path, "kernel8.img", "pi3", *words, forgiving=True)
    assert forgiving.cpu.register(1) == 2
    assert not told(forgiving)


@pytest.mark.parametrize("board", ["zero", "pi2"])
@pytest.mark.parametrize(("offset", "count"), [(4, 1), (0x1C, 1), (0x20, 0)])
def test_aarch32(tmp_path, board, offset, count):
    name = {"zero": "kernel.img", "pi2": "kernel7.img"}[board]
    machine = run(tmp_path, name, board, 0xE3A00902, 0xE2800000 | offset, VBAR, AGAIN32)
    assert len(told(machine)) == count


def test_hyp_mode(tmp_path):
    machine = run(tmp_path, "kernel7.img", "pi2", 0xE3A00902, 0xE2800010, HVBAR, AGAIN32)
    assert "HVBAR gets 0x00008010" in told(machine)[0]
