"""HYP mode of the Pi 2 and 3: how the firmware leaves a core, exceptions, eret, hvc."""

from pathlib import Path

import pytest

from vc4lab.soc.board_unknowns import Unknowns
from vc4lab.soc.debug.trace import Tracer, parse_categories
from vc4lab.soc.machine import Stop
from vc4lab.soc.states.state import load_state, save_state

KERNELS = Path(__file__).parents[2] / "kernels"
HYP, SUPERVISOR = 0x1A, 0x13
NOP, CPS, ERET, SUBS = (bytes.fromhex(word) for word in ("00f020e3", "130002f1", "6e0060e1", "04f05ee2"))


def mode(cpu) -> int:
    return cpu.cpsr & 31


def codes(machine) -> list[str]:
    return [item.code for item in machine.reporter.items]


def kernel(name, old=b"", new=b"") -> bytes:
    image = (KERNELS / f"{name}.img").read_bytes()
    assert image.count(old) >= 1
    return image.replace(old, new)


def test_exceptions_eret_and_hvc(boot):
    machine = boot("hyp")
    assert machine.run().reason is Stop.HALTED, machine.reporter.summary()
    r = machine.cores[0].register
    assert r(4) == 0x1DA
    assert r(5) == 0x80000F00
    assert r(6) == 0x11 << 26 | 1 << 25 | 5
    assert r(7) == 0
    assert r(11) == 0x21685
    assert r(12) == 0x12 << 26 | 1 << 25 | 7
    assert r(10) == 0
    assert mode(machine.cores[0]) == SUPERVISOR


@pytest.mark.parametrize(
    ("board", "config", "setting", "expected"),
    [
        ("pi2", "", "hyp", HYP),
        ("pi2-1.2", "", "hyp", HYP),
        ("pi3", "arm_64bit=0", "hyp", HYP),
        ("pi2", "", "svc", SUPERVISOR),
        ("pi2", "kernel_old=1\ndisable_commandline_tags=1", "hyp", SUPERVISOR),
        ("pi1", "kernel=kernel7.img", "hyp", SUPERVISOR),
    ],
)
def test_the_mode_at_the_start(boot, board, config, setting, expected):
    machine = boot("hello", config, board=board, unknowns=Unknowns({"hyp_start": setting}))
    assert mode(machine.cores[0]) == expected
    assert machine.cores[0].cpsr & 0x1C0 == 0x1C0


def test_names_of_the_cores(boot):
    """MIDR and MPIDR are right in HYP mode, too; the released core begins in it."""
    code = (
        "b00f10ee",  # mrc p15, 0, r0, c0, c0, 5
        "101f10ee",  # mrc p15, 0, r1, c0, c0, 0
        "00200fe1",  # mrs r2, cpsr
        "10309fe5",  # ldr r3, =0x4000009c
        "10409fe5",  # ldr r4, =0x8000
        "004083e5",  # str r4, [r3]
        "04f020e3",  # sev
        "feffffea",  # b .
        "00000000",
        "9c000040",
        "00800000",
    )
    machine = boot(bytes.fromhex("".join(code)), "arm_64bit=0", board="pi3")
    machine.run(seconds=0.01)
    for number in (0, 1):
        r = machine.cores[number].register
        assert r(0) == 0x80000000 + number
        assert r(1) == 0x410FD034
        assert r(2) & 31 == HYP


def test_an_interrupt_without_a_vector(boot):
    """A program that forgets to leave HYP mode gets to know why VBAR does not help."""
    skip_leave_hyp = bytes.fromhex("080000ea")
    machine = boot(skip_leave_hyp + (KERNELS / "irq.img").read_bytes()[4:])
    assert machine.run(seconds=1).reason is Stop.CRASH
    (item,) = [i for i in machine.reporter.items if i.code == "SOC-042"]
    assert "HYP" in item.message
    assert "HVBAR" in item.message


def test_its_own_spsr_by_name(boot):
    code = "d300a0e3 00f36ee1 00134ee1 feffffea"
    machine = boot(bytes.fromhex(code))
    assert machine.run().reason is Stop.HALTED
    assert machine.cores[0].register(1) == 0xD3
    assert codes(machine) == ["SOC-044", "SOC-044"]


def test_thumb_handlers(boot):
    machine = boot("hyp_thumb")
    assert machine.run(seconds=0.01).reason is Stop.HALTED, machine.reporter.summary()
    r = machine.cores[0].register
    assert r(4) == 0x11 << 26 | 1 << 25 | 5
    assert r(5) == 0x11 << 26 | 6
    assert r(6) == 0
    assert r(7) == 0x12 << 26 | 1 << 25 | 0x1234
    assert r(8) & 0x3F == 0x20 | SUPERVISOR
    assert r(10) & 31 == SUPERVISOR
    assert r(11) == 0x12


def test_what_goes_to_it_from_below(boot):
    """HCR.IMO: interrupts, even masked ones; HCR.TGE: the exceptions of user mode."""
    machine = boot("hyp_route")
    machine.run(seconds=0.01)
    r = machine.cores[0].register
    assert r(4) == 1
    assert r(5) & 0xDF == 0xC0 | SUPERVISOR
    assert r(6) == 0x11 << 26 | 1 << 25 | 9
    assert r(7) & 31 == 0x10
    assert r(10) == 3
    assert mode(machine.cores[0]) == 0x10
    assert not codes(machine)


@pytest.mark.parametrize("setting", ["hyp", "svc"])
def test_ways_to_leave_it(boot, setting):
    """As start-up codes do it that take both modes; smc brings a core back to HYP mode."""
    image = "hyp_leave"
    if setting == "svc":  # there is no stub that answers
        image = kernel("hyp_leave", b"\x70\x00\x60\xe1", NOP)
    machine = boot(image, unknowns=Unknowns({"hyp_start": setting}))
    assert machine.run().reason is Stop.HALTED, machine.reporter.summary()
    r = machine.cores[0].register
    start = 0x1C0 | (HYP if setting == "hyp" else SUPERVISOR)
    assert (r(4), r(5), r(8)) == (start, start, start)
    if setting == "hyp":
        assert (r(6), r(7)) == (0x1DA, 0x131)
    assert r(9) & 0xDF == r(11) & 0xDF == 0xC0 | SUPERVISOR
    assert r(10) & 31 == 0x12
    assert not codes(machine)


@pytest.mark.parametrize("masks", [0x00, 0x40, 0x80, 0xC0])
def test_eret_restores_the_masks_of_interrupts(boot, masks):
    """What SPSR_hyp says, not what HYP mode had."""
    old = bytes.fromhex("1f 00 c0 e3 d3 00 80 e3")  # bic r0, r0, #0x1f; orr r0, r0, #0xd3
    new = bytes([0xDF]) + old[1:4] + bytes([0x13 | masks]) + old[5:]
    machine = boot(kernel("hyp_leave", old, new))
    assert machine.run().reason is Stop.HALTED, machine.reporter.summary()
    assert machine.cores[0].register(9) & 0xDF == masks | SUPERVISOR


def test_smc_without_a_monitor(boot):
    machine = boot("hyp_leave", unknowns=Unknowns({"monitor_call": "undefined"}))
    result = machine.run(seconds=0.01)
    assert result.reason is Stop.CRASH
    assert "secure monitor call (smc) at 0x00008004" in result.message
    assert "HVBAR (0x00000000, never set by the program)" in result.message


def test_the_registers_of_the_secure_state(boot):
    """Floating point is allowed already; to allow it again does nothing. SCR does not exist."""
    code = (
        "51 0f 11 ee",  # mrc p15, 0, r0, c1, c1, 2: NSACR
        "51 0f 01 ee",  # mcr p15, 0, r0, c1, c1, 2
        "11 1f 11 ee",  # mrc p15, 0, r1, c1, c1, 0: SCR
        "fe ff ff ea",
    )
    machine = boot(bytes.fromhex("".join(code)))
    result = machine.run(seconds=0.01)
    assert machine.cores[0].register(0) == 0xC00
    assert result.reason is Stop.CRASH
    assert "undefined instruction at 0x00008008" in result.message


def test_from_the_secure_state_to_hyp_mode(boot, tmp_path):
    """Without the stub a program is secure and has its own monitor; all cores begin together."""
    machine = boot("secure", "kernel_old=1\ndisable_commandline_tags=1")
    assert machine.run(seconds=0.01).reason is Stop.HALTED, machine.reporter.summary()
    r = machine.cores[0].register
    assert (r(4) & 0x1FF, r(5), r(6)) == (0x1D3, 0, 0)
    assert r(7) & 0x1FF == 0x1DA
    assert (r(8), r(9)) == (0, 1)
    assert r(10) == 0x80000F00
    save_state(machine, tmp_path / "state")
    again = boot("secure", "kernel_old=1\ndisable_commandline_tags=1")
    load_state(again, tmp_path / "state")
    core, saved = (m.cores[0].hyp_core for m in (again, machine))
    assert (core.scr, core.mvbar) == (saved.scr, saved.mvbar) == (0x131, saved.mvbar)


def test_a_mode_that_cannot_be_changed(boot):
    """The A7 stays in HYP mode; an A53 takes the next instruction as undefined."""
    image = kernel("hyp_leave", NOP, CPS)
    machine = boot(image)
    assert machine.run().reason is Stop.HALTED
    assert machine.cores[0].register(8) == 0x1DA
    assert codes(machine) == ["SOC-045"]
    machine = boot(image, "arm_64bit=0", board="pi3")
    result = machine.run(seconds=0.01)
    assert result.reason is Stop.CRASH
    assert "undefined instruction at 0x00008018" in result.message
    assert codes(machine) == ["SOC-045", "SOC-042"]


def test_vectors_at_0_in_hyp_mode(boot):
    """They work as long as HVBAR happens to be 0, and only for handlers that return by eret."""
    machine = boot("hyp_vectors")
    machine.run(seconds=0.1)
    assert machine.cores[0].register(4) == 1
    assert codes(machine) == ["SOC-046"]
    machine = boot(kernel("hyp_vectors", ERET, SUBS))
    machine.run(seconds=0.1)
    assert (machine.cores[0].register(4), machine.cores[0].register(5)) == (1, 1)
    assert codes(machine) == ["SOC-046", "SOC-047"]


def test_thumb_code_that_looks_like_a_mistake(boot):
    """Two Thumb instructions whose bits are those of ldm ^ in the other state."""
    code = (
        "05008fe2",  # add r0, pc, #5
        "10ff2fe1",  # bx r0: to the next word but one
        "00000000",
        "00235a1c",  # movs r3, #0; adds r2, r3, #1
        "23d05968",  # beq; ldr r1, [r3, #4]
        "fee70000",  # b .
    )
    machine = boot(bytes.fromhex("".join(code)))
    assert machine.run(seconds=0.01).reason is Stop.HALTED, machine.reporter.summary()
    assert machine.cores[0].register(2) == 1
    assert not codes(machine)


def test_hooks_for_mistakes_leave_other_modes_alone(boot):
    """Returns of IRQ mode in a page that was first met in HYP mode are not trapped for long."""
    machine = boot("irq")
    machine.run(seconds=0.1)
    assert not codes(machine)
    cpu = machine.cores[0]
    returns = [place for place in cpu._pages.hooks if cpu.fetch(place) == int.from_bytes(SUBS, "little")]
    assert not returns


def test_masking_interrupts_is_not_looked_at_for_ever(boot):
    """As quick in HYP mode as elsewhere, and as many instructions."""
    code = (
        "012ca0e3",  # mov r2, #0x100
        "00300fe1",  # mrs r3, cpsr
        "80000cf1",  # cpsid i
        "014084e2",  # add r4, r4, #1
        "03f021e1",  # msr cpsr_c, r3
        "012052e2",  # subs r2, r2, #1
        "f9ffff1a",  # bne
        "feffffea",
    )
    counts = set()
    for setting in ("hyp", "svc"):
        machine = boot(bytes.fromhex("".join(code)), unknowns=Unknowns({"hyp_start": setting}))
        assert machine.run().reason is Stop.HALTED
        assert machine.cores[0].register(4) == 0x100
        assert not codes(machine)
        assert 0x8010 not in machine.cores[0]._pages.hooks
        counts.add(machine.counter.count)
    assert len(counts) == 1


def test_a_trace_names_the_modes(boot):
    machine = boot("hyp")
    lines: list[str] = []
    Tracer(machine, parse_categories("irq"), lines.append)
    machine.run()
    text = "\n".join(lines)
    assert "core 0 takes an exception: supervisor call (svc) to HYP mode" in text
    assert "core 0 takes an exception: interrupt to HYP mode" in text
    assert "core 0 continues in HYP mode at 0x00008024" in text
    assert "core 0 continues in supervisor mode at" in text
    assert "supervisor call (svc)\n" in text


def test_its_timer(boot, tmp_path):
    """CNTHP interrupts; CNTVOFF sets back the virtual counter. A state keeps both."""
    machine = boot("hyp_timer")
    machine.run(seconds=0.0005)
    save_state(machine, tmp_path / "state")
    again = boot("hyp_timer")
    load_state(again, tmp_path / "state")
    for one in (machine, again):
        assert one.run(seconds=0.05).reason is Stop.HALTED
        r = one.cores[0].register
        assert (r(4), r(7), r(8)) == (1, 4, 5)
        assert r(6) == 3
        assert 0 <= 0x1000 - r(5) < 10


@pytest.mark.parametrize("seconds", [0, 1e-7, 5e-4])
def test_states(boot, tmp_path, seconds):
    first = boot("hyp")
    first.run(seconds=seconds)
    save_state(first, tmp_path / "state")
    second = boot("hyp")
    load_state(second, tmp_path / "state")
    for machine in (first, second):
        machine.run(seconds=0.01)
    one, two = first.cores[0], second.cores[0]
    assert one.state() == two.state()
    assert two.register(11) == 0x21685
    assert two.register(10) == 0
    assert first.counter.count == second.counter.count
