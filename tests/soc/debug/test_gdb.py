"""The GDB server, spoken to by a client of our own and, where there is one, by gdb-multiarch."""

import re
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.soc.debug.gdb_client import GdbClient
from tests.support.host_tools import needs

from vc4lab.soc.debug.gdb_packets import Kind, PacketReader, frame, unescape
from vc4lab.soc.debug.gdb_registers import read_register, register_file, write_register
from vc4lab.soc.debug.gdb_server import GdbServer
from vc4lab.soc.machine import Machine, Stop

LR, PC, CPSR = 14, 15, 16
COUNT = struct.pack(
    "<11I",
    0xE3A00000,  # 8000 mov r0, #0
    0xE59F1018,  # 8004 ldr r1, =0x9000
    0xE2800001,  # 8008 add r0, r0, #1
    0xE1A00000,  # 800c nop
    0xE5810000,  # 8010 str r0, [r1]
    0xE5912000,  # 8014 ldr r2, [r1]
    0xE3500005,  # 8018 cmp r0, #5
    0x1AFFFFF9,  # 801c bne 8008
    0xEAFFFFFE,  # 8020 b .
    0x00009000,
    0x00000000,
)
COUNT = COUNT[:0x24] + struct.pack("<I", 0x9000)
"""Counts to five in r0 and at 0x9000."""


class Session:
    """Runs a machine here and a client's script in a thread."""

    def __init__(self, machine: Machine, **options: bool) -> None:
        self.machine = machine
        self.told: list[str] = []
        self.server = GdbServer(machine, 0, tell=self.told.append, **options)

    def run(self, script: Callable[[GdbClient], None], **limits: float):
        errors: list[BaseException] = []

        def client() -> None:
            try:
                gdb = GdbClient(self.server.port)
                try:
                    script(gdb)
                finally:
                    gdb.close()
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=client)
        thread.start()
        try:
            result = self.machine.run(**limits)
        finally:
            thread.join(60)
            self.server.close()
        if errors:
            raise errors[0]
        return result


@pytest.fixture
def session(boot):
    return lambda kernel, **options: Session(boot(kernel), **options)


def test_steps_through_hyp_mode(session):
    """Single steps over svc, eret and msr ELR_hyp, from HYP to supervisor mode and back by hvc."""

    def script(gdb: GdbClient) -> None:
        modes = []
        for _step in range(100):
            mode = gdb.register(CPSR) & 0x1F
            if modes[-1:] != [mode]:
                modes.append(mode)
            if gdb.ask(f"m{gdb.register(PC):x},4") == "03f020e3":  # wfi
                gdb.ask(f"P{PC:x}={(gdb.register(PC) + 16).to_bytes(4, 'little').hex()}")
            gdb.ask("s")
        assert modes[:4] == [0x1A, 0x13, 0x1A, 0x13]
        gdb.ask("D")

    session("hyp").run(script, seconds=0.01)


def test_system_registers(boot):
    """What HYP mode returns to and where its vectors are; on a Pi 1 there is none of it."""
    machine = boot("hyp")
    machine.run(seconds=2e-7)
    names = {r.name: r for r in register_file(machine.cpu).registers}
    value = {name: int.from_bytes(read_register(machine.cpu, r), "little") for name, r in names.items()}
    assert value["cpsr"] == machine.cpu.cpsr
    assert value["hvbar"] == machine.cpu.system_register(names["hvbar"].system) != 0
    assert value["elr_hyp"] == machine.cpu.hyp_core.elr != 0
    write_register(machine.cpu, names["hvbar"], bytes(4))
    assert read_register(machine.cpu, names["hvbar"]) != bytes(4)
    write_register(machine.cpu, names["cpsr"], (0x1D3).to_bytes(4, "little"))
    assert machine.cpu.cpsr == 0x1D3
    write_register(machine.cpu, names["cpsr"], (0x1DA).to_bytes(4, "little"))
    assert machine.cpu.cpsr == 0x1DA
    one = boot("hello_zero", "kernel=kernel7.img", board="zero")
    names = {r.name: r for r in register_file(one.cpu).registers}
    assert "hvbar" not in names
    assert all(len(read_register(one.cpu, r)) == r.size for r in names.values())


def test_registers_and_memory(session):
    def script(gdb: GdbClient) -> None:
        assert "PacketSize" in gdb.ask("qSupported:swbreak+")
        assert "org.gnu.gdb.arm.core" in gdb.ask("qXfer:features:read:target.xml:0,fff")
        assert gdb.ask("?").startswith(("S05", "T05"))
        assert gdb.register(PC) == 0x8000
        assert gdb.ask("P0=78563412") == "OK"
        values = gdb.ask("g")
        assert values.startswith("78563412")
        assert gdb.ask(f"G{values}") == "OK"
        assert gdb.ask("m8000,8") == COUNT[:8].hex()
        assert gdb.ask("M9000,4:01020304") == "OK"
        assert gdb.ask(b"X9004,2:\x7d\x03\x09") == "OK"
        assert gdb.ask("m9000,6") == "01020304" + "2309"
        assert gdb.ask("m50000000,4") == "E0e"
        assert gdb.ask("m3f201018,4") == "90000000"
        assert gdb.ask("qRcmd," + b"info".hex()).startswith(b"0.0000".hex())
        assert gdb.ask("nonsense") == ""
        assert gdb.ask("p999") == gdb.ask("mx,y") == gdb.ask("Z0") == "E16"
        gdb.send("c")

    one = session(COUNT)
    one.run(script)
    assert one.machine.cpu.register(0) == 5


def test_threads_are_cores(session):
    def script(gdb: GdbClient) -> None:
        assert gdb.ask("qfThreadInfo") == "m1,2,3,4"
        assert gdb.ask("qsThreadInfo") == "l"
        assert "Pi 2" in bytes.fromhex(gdb.ask("qThreadExtraInfo,1")).decode()
        assert gdb.ask("qC") == "QC1"
        assert gdb.ask("Hg1") == gdb.ask("T1") == "OK"
        assert gdb.ask("Hg7") == gdb.ask("T7") == "E16"
        assert gdb.ask("vCont?") == "vCont;c;C;s;S"
        assert gdb.ask("vCont;s:1;c") == "T05thread:1;"
        assert gdb.register(PC) == 0x8004
        gdb.ask("k")

    result = session(COUNT).run(script)
    assert result.reason is Stop.STOPPED


def test_steps_and_breakpoints_do_not_move_time(session, boot):
    alone = boot(COUNT)
    plain = alone.run()

    def script(gdb: GdbClient) -> None:
        for pc in (0x8004, 0x8008, 0x800C, 0x8010):
            assert gdb.ask("s") == "T05thread:1;"
            assert gdb.register(PC) == pc
        assert gdb.ask("Z1,8018,4") == gdb.ask("Z0,8018,4") == "OK"
        for count in (1, 2):
            gdb.ask("c")
            assert (gdb.register(PC), gdb.register(0)) == (0x8018, count)
        gdb.ask("vCont;s")
        assert gdb.register(PC) == 0x801C
        gdb.ask("c")
        assert gdb.register(0) == 3
        assert gdb.ask("z0,8018,4") == "OK"
        gdb.send("c")
        assert "ended" in bytes.fromhex(gdb.receive()[1:]).decode()
        assert gdb.receive() == "T02thread:1;"
        gdb.send("c")
        assert gdb.receive() == "W00"

    one = session(COUNT)
    result = one.run(script)
    assert result == plain
    assert one.machine.counter.count == alone.counter.count


def test_watchpoints(session):
    def script(gdb: GdbClient) -> None:
        assert gdb.ask("Z2,9000,4") == "OK"
        for count in (1, 2):
            assert gdb.ask("c") == "T05thread:1;watch:9000;"
            assert (gdb.register(PC), gdb.register(0)) == (0x8010, count)
        assert gdb.ask("z2,9000,4") == "OK"
        assert gdb.ask("Z3,9001,1") == "OK"
        assert gdb.ask("c").endswith("rwatch:9000;")
        assert (gdb.register(PC), gdb.register(0)) == (0x8014, 2)
        assert gdb.ask("z3,9001,1") == "OK"
        assert gdb.ask("Z4,9000,2") == "OK"
        assert gdb.ask("c").endswith("awatch:9000;")
        assert gdb.register(PC) == 0x8010
        assert gdb.ask("Z2,9000,ffffff") == "E1c"
        gdb.ask("D")

    one = session(COUNT)
    assert one.run(script).reason is Stop.HALTED
    assert one.machine.memory.u32(0x9000) == 5


def test_a_watched_device_is_written_once(session):
    def script(gdb: GdbClient) -> None:
        gdb.ask("Z2,3f201000,4")
        for _character in "hello":
            assert gdb.ask("c").endswith("watch:3f201000;")
        gdb.ask("D")

    one = session("hello")
    one.run(script)
    assert one.machine.uart.text == "hello from the ARM\n"


def test_writing_registers_and_code(session):
    def script(gdb: GdbClient) -> None:
        assert gdb.ask("Z0,800c,4") == "OK"
        gdb.ask("c")
        assert gdb.ask("M8018,4:0300 50e3".replace(" ", "")) == "OK"  # cmp r0, #3
        assert gdb.ask("P0=02000000") == "OK"
        assert gdb.ask("z0,800c,4") == "OK"
        gdb.ask("D")

    one = session(COUNT)
    one.run(script)
    assert one.machine.cpu.register(0) == 3


def test_interrupting_a_running_program(session):
    def script(gdb: GdbClient) -> None:
        assert gdb.ask("?")
        time.sleep(0.05)
        gdb.send("c")
        time.sleep(0.05)
        gdb.socket.sendall(b"\x03")
        assert gdb.receive() == "T02thread:1;"
        gdb.ask("k")

    result = session("hang", wait=False).run(script, seconds=1e6)
    assert result.reason is Stop.STOPPED


def test_stops_at_a_crash(session):
    def script(gdb: GdbClient) -> None:
        gdb.send("c")
        assert "undefined" in bytes.fromhex(gdb.receive()[1:]).decode()
        assert gdb.receive() == "T0bthread:1;"
        assert gdb.register(PC) == 4
        gdb.ask("D")

    assert session("undefined").run(script).reason is Stop.CRASH


def test_step_into_an_exception(session):
    def script(gdb: GdbClient) -> None:
        svc = 0
        for _step in range(60):
            before = gdb.register(PC)
            word = gdb.ask(f"m{before:x},4")
            gdb.ask("s")
            if word == "070000ef":
                svc = before
                break
        assert svc
        assert gdb.register(PC) % 32 == 8
        assert gdb.register(LR) == svc + 4
        assert gdb.register(CPSR) & 0x1F == 0x13
        gdb.ask("D")

    session("svc").run(script)


def test_a_client_that_vanishes(session):
    def script(gdb: GdbClient) -> None:
        gdb.ask("Z0,8018,4")
        gdb.ask("c")

    one = session(COUNT)
    assert one.run(script).reason is Stop.HALTED
    assert one.machine.cpu.register(0) == 5
    assert one.told[-1] == "the debugger has disconnected; the program continues"


@pytest.mark.parametrize(
    "nonsense",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 20,
        b"$" * 100_000,
        b"$" + b"A" * 500_000,
        b"$g#00" * 100,
        bytes(range(256)) * 2000,
        b"\x03" * 5000,
        b"-" * 5000,
    ],
    ids=["http", "dollars", "huge", "checksums", "bytes", "interrupts", "repeats"],
)
def test_nonsense_never_stops_the_program(session, nonsense):
    def script(gdb: GdbClient) -> None:
        try:
            gdb.socket.sendall(nonsense)
        except OSError:
            return

    one = session(COUNT, wait=False)
    assert one.run(script).reason is Stop.HALTED


def test_a_second_client_is_sent_away(session):
    one = session(COUNT)

    def script(gdb: GdbClient) -> None:
        assert gdb.ask("?")
        with socket.create_connection(("127.0.0.1", one.server.port), timeout=60) as second:
            assert second.recv(10) == b""
        gdb.ask("D")

    assert one.run(script).reason is Stop.HALTED


def test_who_comes_when_the_last_one_has_just_gone_is_served(session):
    server = session(COUNT, wait=False).server
    try:
        with socket.create_connection(("127.0.0.1", server.port), timeout=60):
            server._receive(5.0)
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as second:
            server._receive(5.0)
            second.sendall(b"$?#3f")
            server._receive(5.0)
            assert server._queue
    finally:
        server.close()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=8))
def test_packets_of_nonsense_get_an_answer(commands, packets):
    for packet in packets:
        answer = commands.answer(packet)
        assert isinstance(answer, bytes)
        assert len(answer) <= 0x4000


@settings(max_examples=60, deadline=None)
@given(st.sampled_from("gGpPmMXZzHTqvQcsCSD?"), st.binary(max_size=30))
def test_damaged_commands_get_an_answer(commands, letter, rest):
    assert isinstance(commands.answer(letter.encode() + rest), bytes)


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    from vc4lab.soc.debug.gdb_commands import Commands

    image = tmp_path_factory.mktemp("card") / "kernel7.img"
    image.write_bytes(COUNT)
    return Commands(Machine(image), lambda _core, _event: None)


@given(st.binary(max_size=200), st.integers(1, 50))
def test_frames_survive_any_cut(data, cut):
    stream = b"+" + frame(data) + b"-\x03"
    reader = PacketReader()
    parts = [stream[at : at + cut] for at in range(0, len(stream), cut)]
    received = [item for part in parts for item in reader.feed(part)]
    assert [item.kind for item in received] == [Kind.PACKET, Kind.REPEAT, Kind.INTERRUPT]
    assert received[0].data == data
    assert unescape(b"}\x03") == b"#"


def test_a_client_stays_while_the_machine_runs_in_steps(boot):
    """As under a `Linux`; the end is that of the server."""
    machine = boot(COUNT)
    server = GdbServer(machine, 0)
    seen: list[object] = []

    def client() -> None:
        gdb = GdbClient(server.port)
        gdb.ask("?")
        gdb.ask("Z1,8018,4")
        gdb.send("c")
        seen.extend((gdb.receive(), gdb.register(PC)))
        assert gdb.ask("z1,8018,4") == "OK"
        gdb.send("c")
        seen.append(gdb.receive())
        gdb.close()

    thread = threading.Thread(target=client)
    thread.start()
    for _step in range(40):
        machine.run(seconds=1e-9)
    assert len(seen) == 2
    assert seen[1] == 0x8018
    server.close()
    thread.join(60)
    assert seen[2] == "W00"


@needs("gdb-multiarch")
def test_with_gdb_itself(boot):
    machine = boot(COUNT)
    server = GdbServer(machine, 0)
    commands = [
        "set architecture arm",
        f"target remote :{server.port}",
        "hbreak *0x8018",
        "continue",
        "print/x $pc",
        "watch *(int*)0x9000",
        "continue",
        "stepi",
        "info threads",
        "print/x $cpsr & 0x1f",
        "print/x $hvbar",
        "info registers system",
        "delete",
        "detach",
    ]
    arguments = [part for command in commands for part in ("-ex", command)]
    with subprocess.Popen(
        ["gdb-multiarch", "-nx", "-batch", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as gdb:
        machine.run()
        server.close()
        output = gdb.communicate(timeout=120)[0]
    assert "$1 = 0x8018" in output
    assert "Old value = 1" in output
    assert "New value = 2" in output
    assert "core 0" in output
    assert "$2 = 0x1a" in output
    assert "$3 = 0x0" in output
    assert re.search(r"^hcr +0x0 ", output, re.MULTILINE)
    assert re.search(r"^elr_hyp +0x0 ", output, re.MULTILINE)
    assert machine.cpu.register(0) == 5
