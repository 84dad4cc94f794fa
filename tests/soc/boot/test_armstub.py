"""armstub= of config.txt: the program's own code at address 0, where all cores begin."""

import pytest

from vc4lab.soc.machine import Machine, Stop

MARK = bytes.fromhex("0b57fe5a")
WAIT_64 = ("d503205f", "17ffffff")


def code(*words: str) -> bytes:
    return b"".join(bytes.fromhex(word)[::-1] for word in words)


def stub_64() -> bytes:
    """Counts the cores that come by at 0x90000 + 4 n, then goes to the kernel that the firmware
    says, with the device tree, in EL3.
    """
    body = code(
        "d53800a1",  # mrs x1, mpidr_el1
        "92400421",  # and x1, x1, #3
        "d2a00122",  # mov x2, #0x90000
        "52800023",  # mov w3, #1
        "b8217843",  # str w3, [x2, x1, lsl #2]
        "b4000041",  # cbz x1, 1f
        "14000000",  # b .
        "18000704",  # 1: ldr w4, 0xfc
        "180006c0",  # ldr w0, 0xf8
        "d61f0080",  # br x4
    )
    return body + bytes(0xF0 - len(body)) + MARK + bytes(12)


def card(folder, config: str, **files: bytes):
    (folder / "config.txt").write_text(config)
    for name, data in files.items():
        (folder / f"{name}.{'img' if name.startswith('kernel') else 'bin'}").write_bytes(data)
    return folder


def test_aarch64_begins_in_el3_on_all_cores(tmp_path):
    kernel = code("d5384241", *WAIT_64)  # mrs x1, CurrentEL
    place = card(tmp_path, "armstub=stub.bin", kernel8=kernel, stub=stub_64())
    machine = Machine(place, "pi3")
    assert machine.plan.entry == 0
    assert machine.run(seconds=0.01).reason is Stop.HALTED, machine.reporter.summary()
    cpu = machine.cores[0]
    assert 0x80000 <= cpu.pc < 0x80010
    assert cpu.register(1) == 3 << 2
    tree = cpu.register(0)
    assert machine.memory.read(tree, 4) == bytes.fromhex("d00dfeed")
    assert [machine.memory.u32(0x90000 + 4 * n) for n in range(4)] == [1, 1, 1, 1]
    assert machine.memory.u64(0xF0) == 0, "the mark is cleared: core 3's entry address"
    assert not machine.reporter.items


def test_a_stub_without_the_mark_is_loaded_as_it_is(tmp_path):
    stub = bytearray(stub_64())
    stub[0xF0:0x100] = bytes(range(16))
    place = card(tmp_path, "armstub=stub.bin", kernel8=code(*WAIT_64), stub=bytes(stub))
    machine = Machine(place, "pi3")
    assert machine.memory.read(0xF0, 16) == bytes(range(16))


@pytest.mark.parametrize(
    ("board", "kernel", "cores"),
    [("zero", "kernel", 1), ("pi1", "kernel", 1), ("pi2", "kernel7", 4), ("pi3", "kernel7", 4)],
)
def test_aarch32_begins_in_secure_supervisor_mode(tmp_path, board, kernel, cores):
    """The stub sees its core's number and mode, and passes r0 on."""
    stub = code(
        "ee100fb0" if cores > 1 else "e3a00000",  # mrc p15, 0, r0, c0, c0, 5
        "e2000003",  # and r0, r0, #3
        "e10f1000",  # mrs r1, cpsr
        "e3a02809",  # mov r2, #0x90000
        "e7821100",  # str r1, [r2, r0, lsl #2]
        "e3500000",  # cmp r0, #0
        "1afffffe",  # bne .
        "e59f20d4",  # ldr r2, 0xf8
        "e59ff0d4",  # ldr pc, 0xfc
    )
    stub += bytes(0xF0 - len(stub)) + MARK + bytes(12)
    place = card(tmp_path, "arm_64bit=0\narmstub=stub.bin", stub=stub, **{kernel: code("eafffffe")})
    machine = Machine(place, board)
    assert machine.run(seconds=0.01).reason is Stop.HALTED, machine.reporter.summary()
    assert machine.cores[0].pc == 0x8000
    assert machine.cores[0].register(2) == 0x100
    assert machine.memory.u32(0x104) == 0x54410001, "the tagged list"
    for number in range(cores):
        assert machine.memory.u32(0x90000 + 4 * number) & 0x1F == 0x13


@pytest.mark.parametrize(
    ("config", "stub", "why"),
    [
        ("armstub=no.bin", None, "is missing"),
        ("armstub=stub.bin", b"", "is empty"),
        ("armstub=stub.bin", b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
    ],
)
def test_a_stub_that_cannot_be_used(tmp_path, config, stub, why):
    """The firmware's own is used."""
    files = {} if stub is None else {"stub": stub}
    machine = Machine(card(tmp_path, config, kernel8=code(*WAIT_64), **files), "pi3")
    assert machine.plan.entry == 0x80000
    (item,) = machine.reporter.items
    assert item.code == "BOOT-013"
    assert why in item.message


def test_kernel_old_loads_the_kernel_instead(tmp_path):
    place = card(tmp_path, "armstub=stub.bin\nkernel_old=1", kernel8=code(*WAIT_64), stub=stub_64())
    machine = Machine(place, "pi3")
    assert machine.memory.read(0, 8) == code(*WAIT_64)


def test_registers_of_a_cortex_a53(tmp_path):
    """The public stub sets latencies of L2 and SMPEN; they keep what is written."""
    kernel = code(
        "d539f220",  # mrs x0, S3_1_C15_C2_1: CPUECTLR_EL1
        "d2800841",  # mov x1, #0x42
        "d519f221",  # msr S3_1_C15_C2_1, x1
        "d539f222",  # mrs x2, S3_1_C15_C2_1
        "d539b043",  # mrs x3, S3_1_C11_C0_2: L2CTLR_EL1
        *WAIT_64,
    )
    machine = Machine(card(tmp_path, "", kernel8=kernel), "pi3")
    assert machine.run(seconds=0.01).reason is Stop.HALTED, machine.reporter.summary()
    r = machine.cores[0].register
    assert (r(0), r(2), r(3) >> 24) == (0x40, 0x42, 3)
