"""Execute code (0x00030010): functions of a program on the VPU, good and hostile."""

import random
import struct

import pytest
from tests.soc.conftest import boot as boot
from tests.soc.videocore.vpu.code import RTS, encode, pack
from tests.soc.videocore.vpu.test_execution import CODE, DATA, STACK, Devices, three

from vc4lab.memory import GuestMemory
from vc4lab.soc.board_unknowns import Unknowns
from vc4lab.soc.videocore.vpu.core import Endless, Refused
from vc4lab.soc.videocore.vpu.executor import Executor
from vc4lab.soc.videocore.vpu.forms import FORMS
from vc4lab.soc.videocore.vpu.memory import Fault, VpuMemory
from vc4lab.soc.videocore.vpu.service import BUDGET

HALT = bytes.fromhex("feffffea")
MESSAGE, PROGRAM, ARRAY = 0x100000, 0x200000, 0x300000
MAILBOX = 0xB880
ADD = 2


@pytest.fixture
def machine(boot):
    machine = boot(HALT)
    machine.mailbox.at_once = True
    return machine


def send(machine, *arguments: int, code: bytes = b"", function: int = PROGRAM | 0xC0000000):
    """Execute code; the answer's length word and r0."""
    if code:
        machine.memory.write(PROGRAM, code + bytes.fromhex(RTS))
    values = [function, *arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<13I", 52, 0, 0x30010, 28, 0, *values, 0)
    machine.memory.write(MESSAGE, data)
    machine.bus.write(MAILBOX + 0x20, 4, MESSAGE | 0xC0000000 | 8)
    assert machine.bus.read(MAILBOX, 4) == MESSAGE | 0xC0000000 | 8
    assert machine.memory.u32(MESSAGE + 4) == 0x80000000
    return machine.memory.u32(MESSAGE + 16), machine.memory.u32(MESSAGE + 20)


def codes(machine) -> list[str]:
    return [item.code for item in machine.reporter.items]


SUM = b"".join([
    encode("alu_small", q=0, d=2, u=0),
    encode("after", w=0, d=3, b=0),
    encode("alu_register", p=ADD, d=2, b=3),
    encode("addcmpb", c=1, d=1, i=-1, u=0, o=-6),
    encode("alu_register", p=0, d=0, b=2),
])  # fmt: skip


def test_the_sum_of_an_array(machine):
    values = list(range(1000, 2000))
    machine.memory.write(ARRAY, struct.pack("<1000I", *values))
    before = machine.clock.now
    assert send(machine, ARRAY | 0xC0000000, len(values), code=SUM) == (0x80000004, sum(values))
    executed = 1 + 3 * len(values) + 2
    assert machine.clock.now - before >= executed * 1_000_000_000 // machine.board.core_clock
    assert codes(machine) == []
    assert not machine.videocore.pool.blocks, "the stack is given back"


def test_a_kernel_lets_the_vpu_work(boot):
    """ldr r0, =mailbox; ldr r1, =message; str r1, [r0]; b ."""
    arm = [0xE59F0008, 0xE59F1008, 0xE5801000, 0xEAFFFFFE, 0x3F00B8A0, 0xC0008108]
    message = [52, 0, 0x30010, 28, 0, 0xC0008200, 0xC0008300, 4, 0, 0, 0, 0, 0]
    image = bytearray(0x310)
    for at, words in ((0, arm), (0x100, message), (0x300, [1, 20, 300, 4000])):
        struct.pack_into(f"<{len(words)}I", image, at, *words)
    code = SUM + bytes.fromhex(RTS)
    image[0x200 : 0x200 + len(code)] = code
    machine = boot(bytes(image))
    machine.run(seconds=0.01)
    assert machine.memory.u32(0x8110) == 0x80000004
    assert machine.memory.u32(0x8114) == 4321
    assert codes(machine) == []


def test_all_six_arguments_arrive(machine):
    total = b"".join(encode("alu_register", p=ADD, d=0, b=n) for n in range(1, 6))
    assert send(machine, 1, 20, 300, 4000, 50000, 600000, code=total)[1] == 654321


def test_bits_are_counted_and_stored(machine):
    code = encode("alu_three", p=48, d=2, a=0, b=0) + encode("access", w=1, d=2, b=1)
    assert send(machine, 0xF00F00FF, ARRAY | 0x40000000, code=code)[0] == 0x80000004
    assert machine.memory.u32(ARRAY) == 16


def test_a_pushed_frame_and_a_call(machine):
    double = encode("alu_register", p=ADD, d=0, b=0) + bytes.fromhex(RTS)
    main = (
        encode("push_with_lr", k=1, n=0)
        + encode("alu_register", p=0, d=6, b=1)
        + encode("call_relative", 4, o=4 + 2 + 2)
        + encode("alu_register", p=ADD, d=0, b=6)
        + encode("pop_with_pc", k=1, n=0)
        + double
    )
    assert send(machine, 21, 100, code=main)[1] == 142


def test_registers_of_the_board(machine):
    timer, pin = 0x7E003004, 0x7E20001C
    code = encode("access", w=0, d=2, b=0) + encode("access", w=1, d=3, b=1)
    code += encode("alu_register", p=0, d=0, b=2)
    machine.bus.write(0x200004, 4, 1 << 18)
    assert send(machine, timer, pin, 0, 1 << 16, code=code)[1] > 0
    assert machine.bus.read(0x200034, 4) & 1 << 16


def test_a_wait_for_the_timer_ends(machine):
    """Guest time passes by the function's own instructions."""
    wait = [
        encode("access", w=0, d=2, b=0),
        encode("alu_register", p=ADD, d=2, b=1),
        encode("access", w=0, d=3, b=0),
        encode("addcmpb", c=2, d=3, i=0, b=2, o=-2),
    ]
    assert send(machine, 0x7E003004, 50, code=b"".join(wait))[0] == 0x80000004
    assert codes(machine) == []


def test_what_is_not_done_is_named(machine):
    assert send(machine, code=bytes.fromhex("00f8") + bytes(8))[0] == 0
    (item,) = machine.reporter.items
    assert item.code == "SOC-090"
    assert "0xf800 at 0xc0200000 is an 80-bit vector instruction: the vector unit" in item.message


def test_faults_are_named(machine):
    assert send(machine, code=three("div.uu", i=0))[0] == 0
    assert send(machine, function=0x3F000000)[0] == 0
    assert send(machine, function=0xC0200001)[0] == 0
    assert codes(machine) == ["SOC-091"] * 3
    assert "division by zero (at 0xc0200000)" in machine.reporter.items[0].message
    code = encode("access", w=0, d=0, b=0)
    assert send(machine, machine.board.peripherals + 0x3004, code=code)[0] == 0
    assert "for the VPU it is at 0x7e003004" in machine.reporter.items[3].message


def test_an_endless_function_is_named(machine):
    assert send(machine, code=encode("branch", 2, o=0))[0] == 0
    (item,) = machine.reporter.items
    assert item.code == "SOC-092"
    assert f"{BUDGET:,} instructions" in item.message
    assert send(machine, code=b"\1\0")[0] == 0, "as on a board: the VPU does not come back"
    assert codes(machine) == ["SOC-092"] * 2


def test_the_functions_of_a_message_share_its_budget(machine, monkeypatch):
    """A thousand tags of a message would take a quarter of an hour otherwise."""
    monkeypatch.setattr("vc4lab.soc.videocore.vpu.service.BUDGET", 100)
    machine.memory.write(PROGRAM, b"\1\0" * 39 + bytes.fromhex(RTS))
    tags = [0x30010, 28, 0, PROGRAM | 0xC0000000, *[0] * 6] * 5
    message = struct.pack(f"<2I{len(tags)}II", 12 + 4 * len(tags), 0, *tags, 0)
    machine.memory.write(MESSAGE, message)
    for _again in range(2):
        machine.memory.write(MESSAGE, message[: 12 + 80 - 4] + bytes(4))
        machine.bus.write(MAILBOX + 0x20, 4, MESSAGE | 0xC0000000 | 8)
    assert codes(machine) == [], "twice eighty instructions"
    machine.memory.write(MESSAGE, message)
    machine.bus.write(MAILBOX + 0x20, 4, MESSAGE | 0xC0000000 | 8)
    answered = [machine.memory.u32(MESSAGE + 16 + 40 * n) >> 31 for n in range(5)]
    assert answered == [1, 1, 0, 0, 0]
    assert machine.reporter.counts["SOC-092"] == 3


def test_the_vpu_cannot_call_itself(machine):
    code = encode("access", w=1, d=1, b=0)
    answer = send(machine, 0x7E00B8A0, MESSAGE | 0xC0000000 | 8, code=code)
    assert answer[0] == 0x80000004
    assert codes(machine) == ["SOC-090"]


def test_no_room_for_a_stack(machine):
    pool = machine.videocore.pool
    assert pool.allocate(pool.free - 4096) is not None
    assert send(machine, code=bytes(2))[0] == 0
    assert codes(machine) == ["SOC-091"]


def test_the_arm_executes_what_the_vpu_has_written(machine):
    seen = []
    machine.videocore.execute_code.__self__.code_changed = lambda: seen.append(1)
    send(machine, ARRAY | 0xC0000000, 5, code=encode("access", w=1, d=1, b=0))
    assert seen == [1]


def test_hostile_code_stays_in_ram():
    """Random instructions, random words and random data: never anything but the three ends."""
    chance = random.Random(30010)
    ram = 1 << 20
    memory = GuestMemory(ram)
    ends = dict.fromkeys((Refused, Fault, Endless, int), 0)
    words = 0
    while words < 10_000:
        code = b"".join(_anything(chance) for _instruction in range(16))
        words += len(code) // 4
        memory.write(CODE, code)
        executor = Executor(VpuMemory(memory, Devices(), False), Unknowns())  # type: ignore[arg-type]
        for number in range(6, 25):
            executor.state.registers[number] = _address(chance)
        try:
            executor.call(CODE, [_address(chance) for _n in range(6)], STACK, 200)
            ends[int] += 1
        except (Refused, Fault, Endless) as end:
            ends[type(end)] += 1
        assert all(0 <= value <= 0xFFFFFFFF for value in executor.state.registers)
    assert all(ends.values()), ends
    assert not any(memory.read(ram, 1 << 16)), "nothing is written after the RAM"


def _address(chance: random.Random) -> int:
    return chance.choice((DATA, chance.getrandbits(32), chance.randrange(64), 0x7E003000))


def _anything(chance: random.Random) -> bytes:
    if chance.random() < 0.1:
        return chance.randbytes(2)
    if chance.random() < 0.1:
        return bytes.fromhex(RTS)
    form = chance.choice([form for form in FORMS if not form.refused])
    word = form.match | chance.getrandbits(8 * form.size) & ~form.mask
    return pack(form, form.extract(word))
