"""The commands of the GDB remote serial protocol, on a stopped machine.

Source: the GDB manual, appendix E. A command is a method called `do_<first letter>`; queries and
`v` packets are called `query_…` and `v_…`. A method takes the rest of the packet and gives the
answer; an unknown command is answered with nothing, which is how the protocol says "not supported".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from vc4lab.soc.cores.cpu import Cpu
from vc4lab.soc.debug.breakpoints import Breakpoints, StopEvent, Watch
from vc4lab.soc.debug.debug_memory import DebugMemory
from vc4lab.soc.debug.gdb_packets import PACKET_LIMIT, number
from vc4lab.soc.debug.gdb_registers import read_register, register_file, write_register
from vc4lab.soc.machine import Machine

OK, UNSUPPORTED = b"OK", b""
BAD_PACKET, BAD_MEMORY, NO_ROOM = b"E16", b"E0e", b"E1c"
SIGINT, SIGTRAP, SIGSEGV = 2, 5, 11
WATCHES = {b"2": Watch.WRITE, b"3": Watch.READ, b"4": Watch.ACCESS}
READ_LIMIT = PACKET_LIMIT // 2 - 8


class Next(Enum):
    """The machine after a command: it stands still, or goes on."""

    STAY = "goes on standing"
    RUN = "goes on running"
    DETACH = "runs on without a debugger"
    KILL = "ends"


@dataclass
class Core:
    """A core as a thread: numbered from 1."""

    thread: int
    cpu: Cpu
    points: Breakpoints
    memory: DebugMemory


class Commands:
    """Answers packets.

    Parameters
    ----------
    on_stop
        Called when a core stands at one of its points.
    """

    def __init__(self, machine: Machine, on_stop: Callable[[Core, StopEvent], None]) -> None:
        self.machine = machine
        self.cores = [self._core(n, cpu, on_stop) for n, cpu in enumerate(machine.cores, 1)]
        self.stopped = self.cores[0]
        self.last_stop = b"T%02xthread:1;" % SIGTRAP
        self.no_acknowledge = False
        self.next = Next.STAY
        self._selected = self.cores[0]
        self._continued: Core | None = None

    def _core(self, thread: int, cpu: Cpu, on_stop: Callable[[Core, StopEvent], None]) -> Core:
        memory = DebugMemory(self.machine, cpu)
        points = Breakpoints(cpu, lambda event: on_stop(core, event))
        points.is_device = memory.is_device
        core = Core(thread, cpu, points, memory)
        return core

    def answer(self, packet: bytes) -> bytes:
        """The answer to a packet; `next` says whether the machine is to go on."""
        self.next = Next.STAY
        command = "stop_reason" if packet[:1] == b"?" else packet[:1].decode("latin-1")
        handler = getattr(self, f"do_{command}", None)
        if handler is None:
            return UNSUPPORTED
        try:
            reply: bytes = handler(packet[1:])
        except (ValueError, IndexError):
            return BAD_PACKET
        return reply

    def stop_reply(self, core: Core, event: StopEvent) -> bytes:
        """The packet that says why the machine stands."""
        self.stopped = self._selected = core
        self._continued = None
        more = b""
        if event.kind in {watch.value for watch in Watch}:
            more = b"%s:%x;" % (event.kind.encode(), event.address)
        signal = {"interrupt": SIGINT, "crash": SIGSEGV}.get(event.kind, SIGTRAP)
        self.last_stop = b"T%02xthread:%x;%s" % (signal, core.thread, more)
        return self.last_stop

    def forget(self) -> None:
        """The client is gone: no points are left."""
        for core in self.cores:
            core.points.clear()

    # -- state -------------------------------------------------------------------------------------

    def do_stop_reason(self, _rest: bytes) -> bytes:
        return self.last_stop

    def do_g(self, _rest: bytes) -> bytes:
        cpu = self._selected.cpu
        return b"".join(read_register(cpu, r) for r in register_file(cpu).registers).hex().encode()

    def do_G(self, rest: bytes) -> bytes:
        cpu = self._selected.cpu
        data = bytes.fromhex(rest.decode("ascii"))
        for register in register_file(cpu).registers:
            if len(data) < register.size:
                break
            write_register(cpu, register, data)
            data = data[register.size :]
        return OK

    def do_p(self, rest: bytes) -> bytes:
        cpu = self._selected.cpu
        return read_register(cpu, register_file(cpu).registers[number(rest)]).hex().encode()

    def do_P(self, rest: bytes) -> bytes:
        which, _, value = rest.partition(b"=")
        cpu = self._selected.cpu
        register = register_file(cpu).registers[number(which)]
        data = bytes.fromhex(value.decode("ascii"))
        if len(data) != register.size:
            return BAD_PACKET
        write_register(cpu, register, data)
        return OK

    def do_m(self, rest: bytes) -> bytes:
        address, size = (number(part) for part in rest.split(b",", 1))
        data = self._selected.memory.read(address, min(size, READ_LIMIT))
        return data.hex().encode() if data or not size else BAD_MEMORY

    def do_M(self, rest: bytes) -> bytes:
        place, _, data = rest.partition(b":")
        return self._write(place, bytes.fromhex(data.decode("ascii")))

    def do_X(self, rest: bytes) -> bytes:
        place, _, data = rest.partition(b":")
        return self._write(place, data)

    def _write(self, place: bytes, data: bytes) -> bytes:
        address, size = (number(part) for part in place.split(b",", 1))
        if size != len(data):
            return BAD_PACKET
        return OK if self._selected.memory.write(address, data) else BAD_MEMORY

    # -- points ------------------------------------------------------------------------------------

    def do_Z(self, rest: bytes) -> bytes:
        kind, address, size = rest.split(b";")[0].split(b",")
        for core in self.cores:
            if kind in (b"0", b"1"):
                worked = core.points.add_breakpoint(number(address))
            elif kind in WATCHES:
                worked = core.points.add_watchpoint(WATCHES[kind], number(address), number(size))
            else:
                return UNSUPPORTED
            if not worked:
                return NO_ROOM
        return OK

    def do_z(self, rest: bytes) -> bytes:
        kind, address, size = rest.split(b";")[0].split(b",")
        for core in self.cores:
            if kind in (b"0", b"1"):
                core.points.remove_breakpoint(number(address))
            elif kind in WATCHES:
                core.points.remove_watchpoint(WATCHES[kind], number(address), number(size))
            else:
                return UNSUPPORTED
        return OK

    # -- going on ----------------------------------------------------------------------------------

    def _go(self, step: Core | None, address: bytes = b"") -> bytes:
        if address:
            core = step or self._continued or self._selected
            pc = next(r for r in register_file(core.cpu).registers if r.name == "pc")
            write_register(core.cpu, pc, number(address).to_bytes(8, "little"))
        for core in self.cores:
            core.points.resume(step=core is step)
        self.next = Next.RUN
        return UNSUPPORTED

    def do_c(self, rest: bytes) -> bytes:
        return self._go(None, rest)

    def do_s(self, rest: bytes) -> bytes:
        return self._go(self._continued or self.stopped, rest)

    def do_C(self, rest: bytes) -> bytes:
        return self._go(None, rest.partition(b";")[2])

    def do_S(self, rest: bytes) -> bytes:
        return self._go(self._continued or self.stopped, rest.partition(b";")[2])

    def do_v(self, rest: bytes) -> bytes:
        if rest == b"Cont?":
            return b"vCont;c;C;s;S"
        if rest.startswith(b"Cont;"):
            return self._continue(rest[5:])
        if rest.partition(b";")[0] == b"Kill":
            self.next = Next.KILL
            return OK
        return UNSUPPORTED

    def _continue(self, actions: bytes) -> bytes:
        """`vCont`: the first action for a thread counts; all other cores run."""
        step: Core | None = None
        for action in actions.split(b";"):
            what, _, thread = action.partition(b":")
            if what[:1] not in (b"c", b"C", b"s", b"S") or not what:
                return BAD_PACKET
            if what[:1] in (b"s", b"S"):
                step = self._thread(thread) if thread else self.stopped
                break
        return self._go(step)

    def do_k(self, _rest: bytes) -> bytes:
        self.next = Next.KILL
        return OK

    def do_D(self, _rest: bytes) -> bytes:
        self.next = Next.DETACH
        return OK

    # -- threads and queries -----------------------------------------------------------------------

    def _thread(self, text: bytes) -> Core:
        if text in (b"0", b"-1", b""):
            return self.stopped
        found = [core for core in self.cores if core.thread == number(text)]
        if not found:
            raise ValueError("no such thread")
        return found[0]

    def do_H(self, rest: bytes) -> bytes:
        core = self._thread(rest[1:])
        if rest[:1] == b"g":
            self._selected = core
        elif rest[:1] == b"c":
            self._continued = None if rest[1:] in (b"0", b"-1") else core
        else:
            return BAD_PACKET
        return OK

    def do_T(self, rest: bytes) -> bytes:
        self._thread(rest)
        return OK

    def do_Q(self, rest: bytes) -> bytes:
        if rest == b"StartNoAckMode":
            self.no_acknowledge = True
            return OK
        return UNSUPPORTED

    def do_q(self, rest: bytes) -> bytes:
        name = rest.replace(b",", b":").partition(b":")[0]
        query = self.QUERIES.get(name)
        return UNSUPPORTED if query is None else query(self, rest[len(name) + 1 :])

    def _supported(self, _rest: bytes) -> bytes:
        return b"PacketSize=%x;QStartNoAckMode+;qXfer:features:read+;vContSupported+" % PACKET_LIMIT

    def _features(self, rest: bytes) -> bytes:
        kind, what, name, window = rest.split(b":", 3)
        if (kind, what, name) != (b"features", b"read", b"target.xml"):
            return UNSUPPORTED if kind != b"features" else b"E00"
        offset, size = (number(part) for part in window.split(b",", 1))
        text = register_file(self._selected.cpu).xml().encode()
        part = text[offset : offset + min(size, READ_LIMIT)]
        return (b"m" if offset + len(part) < len(text) else b"l") + part

    def _threads(self, _rest: bytes) -> bytes:
        return b"m" + b",".join(b"%x" % core.thread for core in self.cores)

    def _thread_name(self, rest: bytes) -> bytes:
        core = self._thread(rest)
        return f"core {core.thread - 1} ({self.machine.board.title})".encode().hex().encode()

    def _monitor(self, rest: bytes) -> bytes:
        """`monitor …` in GDB."""
        words = bytes.fromhex(rest.decode("ascii")).decode("utf-8", "replace").split()
        if words == ["info"]:
            machine = self.machine
            text = f"{machine.seconds:.6f} s of guest time, {machine.frames.count} frames; "
            text += machine.watchdog.describe()
        else:
            text = "monitor info: guest time, frames, and what waits for what"
        return f"{text}\n".encode().hex().encode()

    QUERIES = {  # noqa: RUF012 - a table of methods
        b"Supported": _supported,
        b"Xfer": _features,
        b"fThreadInfo": _threads,
        b"sThreadInfo": lambda _self, _rest: b"l",
        b"ThreadExtraInfo": _thread_name,
        b"C": lambda self, _rest: b"QC%x" % self.stopped.thread,
        b"Attached": lambda _self, _rest: b"1",
        b"Symbol": lambda _self, _rest: OK,
        b"Rcmd": _monitor,
    }
