"""Saved states: a machine in the middle of a program, in a file that need not be trusted.

The file is a zip archive with `state.json` (format, version, board, a digest of the program, the
table of `state_table.py`, registers, events, checksums of RAM), `ram.bin` (the pages of RAM that
are not zero) and `card.bin` (the blocks written to the SD card).
Everything is checked before anything is set; what does not fit ends in `StateError`.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from vc4lab.files import size_text, written_whole
from vc4lab.soc.address.polls import checked
from vc4lab.soc.clock import Event
from vc4lab.soc.cores.generic_timer import UNITS
from vc4lab.soc.devices.timers import ArmTimer
from vc4lab.soc.hardware import Hardware
from vc4lab.soc.machine import Machine
from vc4lab.soc.media.sd_medium import MAX_KEPT, MAX_RANGES, SECTOR
from vc4lab.soc.states import state_cpu, state_cpu64
from vc4lab.soc.states.state_cores import check_core, snapshot_core
from vc4lab.soc.states.state_ram import (
    Damaged,
    checksums,
    member,
    noise_of,
    restore_ram,
    used_pages,
    write_ram,
)
from vc4lab.soc.states.state_table import BadValue, rows
from vc4lab.soc.videocore.framebuffer import Geometry
from vc4lab.soc.videocore.vc_memory import Allocation
from vc4lab.v3d.state.power_on import is_idle
from vc4lab.v3d.state.saved_values import Row

FORMAT, VERSION = "vc4lab machine state", 17
LARGEST_TABLE = 64 << 20
LARGEST_FILE, LARGEST_DIRECTORY = 2 << 30, 4096
DIRECTORY_END, DIRECTORY_END_REST = b"PK\5\6", 18
"""How the end of a zip archive's table of contents begins, and the bytes after that."""
MAX_BLOCKS = 10_000
SUPPLIES = frozenset({"enable QPU", "domain", "clock"})


class StateError(Exception):
    """The state cannot be saved or loaded; the text says why."""


def save_state(machine: Machine, path: str | Path, *, packed: bool = True, private: bool = False) -> None:
    """Write the machine's state whole, or leave the old file. Raises StateError, OSError.

    packed: a small file; else one whose RAM `load_state` can use in place. private: only the user
    may read and write it.
    """
    v3d = machine.v3d
    if not can_be_saved(machine):
        raise StateError("the V3D is busy; its state can be saved between two frames")
    pages = used_pages(machine.memory)
    card = machine.card_slot() if machine.card_slot.changed else None
    state = {
        "format": FORMAT,
        "version": VERSION,
        "board": machine.board.name,
        "program": _digest(machine),
        "instructions": machine.counter.count,
        "supplies": sorted(machine.v3d_bridge._supplies),
        "v3d": v3d is not None,
        "tables": {row.name: row.snapshot() for row in rows(machine)},
        "registers": [
            (state_cpu64 if core.cpu.WIDE else state_cpu).snapshot_cpu(core.cpu)
            for core in machine.processors.all
        ],
        "scheduler": [snapshot_core(core) for core in machine.processors.all],
        "polls": machine.bus.polls.kept.hex(),
        "events": _pending_events(machine),
        "timers": [[*t.settings, [t.offset]] for t in _generic_timers(machine)],
        "display": _snapshot_display(machine),
        "pages": pages,
        "checksums": checksums(machine.memory, pages),
        "noise": machine.memory.noise,
        "card": {"written": sorted(card.written) if card else [], "erased": card.erased if card else []},
    }
    with written_whole(path, private=private) as whole, zipfile.ZipFile(whole, "w") as archive:
        archive.writestr(member("state.json"), json.dumps(state))
        write_ram(machine.memory, pages, archive, packed=packed)
        with archive.open(member("card.bin"), "w") as file:
            for _sector, data in sorted(card.written.items()) if card else ():
                file.write(data)


def can_be_saved(machine: Machine) -> bool:
    """Whether this is a moment at which the state can be saved: the V3D is not at work."""
    v3d = machine.v3d
    return v3d is None or (not v3d.waiting and _v3d_idle(v3d))


def load_state(machine: Machine, path: str | Path, *, in_place: bool = False) -> None:
    """Bring a fresh machine with the same program into a saved state. Raises StateError, OSError.

    After a StateError the machine is as it was, unless packed RAM is damaged.
    in_place: take RAM that is not packed from the file as it is touched; nothing may shorten the
    file while the machine is used (an own cache's, which is only ever replaced whole).
    """
    _check_archive(Path(path))
    try:
        with zipfile.ZipFile(path) as archive:
            state = _read_table(archive)
            _check_identity(machine, state)
            _restore(machine, state, archive, in_place)
    except (*(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError), Damaged) as error:
        raise StateError(f"the file is damaged ({error})") from None
    except (BadValue, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise StateError(f"the file does not hold a machine's state ({error})") from None


def _check_archive(path: Path) -> None:
    """Whether the archive's table of contents is that of three files, before zipfile reads it."""
    if path.exists() and not path.is_file():
        raise StateError("it is not a regular file")
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - len(DIRECTORY_END) - DIRECTORY_END_REST, 0))
        end = file.read()
    if size > LARGEST_FILE:
        raise StateError(f"the file has more than {size_text(LARGEST_FILE)}")
    if not end.startswith(DIRECTORY_END):
        raise StateError("the file is not a saved state")
    if int.from_bytes(end[12:16], "little") > LARGEST_DIRECTORY:
        raise StateError("the file is not a saved state")


def _digest(machine: Machine) -> str:
    return hashlib.sha256(machine.plan.image).hexdigest()


def _v3d_idle(v3d: Any) -> bool:
    return not hasattr(v3d, "threads") or is_idle(v3d)


def _read_table(archive: zipfile.ZipFile) -> dict[str, Any]:
    names = sorted(archive.namelist())
    if names != ["card.bin", "ram.bin", "state.json"]:
        raise StateError("the file is not a saved state")
    if archive.getinfo("state.json").file_size > LARGEST_TABLE:
        raise StateError("the file's table is too large")
    with archive.open("state.json") as file:
        state = json.loads(file.read(LARGEST_TABLE))
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise StateError("the file is not a saved state")
    if state.get("version") != VERSION:
        raise StateError(f"the file has version {state.get('version')}, not {VERSION}")
    return state


def _check_identity(machine: Machine, state: dict[str, Any]) -> None:
    if state["board"] != machine.board.name:
        raise StateError(f"the state belongs to a {str(state['board'])[:40]!r} board")
    if state["program"] != _digest(machine):
        raise StateError("the state belongs to another program")


def _restore(machine: Machine, state: dict[str, Any], archive: zipfile.ZipFile, in_place: bool) -> None:
    cores = machine.processors.all
    supplies = state["supplies"]
    registers = state["registers"]
    timers = _generic_timers(machine)
    scheduler = [check_core(saved) for saved in state["scheduler"]]
    polls = checked(bytes.fromhex(state["polls"]))
    if len(registers) != len(cores) or len(scheduler) != len(cores):
        raise BadValue("registers")
    for core, saved in zip(cores, registers, strict=True):
        sane = (state_cpu64 if core.cpu.WIDE else state_cpu).is_sane
        if not all(type(value) is int for value in saved.values()) or not sane(saved):
            raise BadValue("registers")
    if not SUPPLIES.issuperset(supplies) or bool(supplies) > bool(state["v3d"]):
        raise BadValue("supplies")
    if len(state["timers"]) != len(timers):
        raise BadValue("timers")
    settings = [_check_timer(*saved) for saved in state["timers"]]
    events = {name: at for name, at in state["events"].items() if type(at) is int and at >= 0}
    instructions = state["instructions"]
    if type(instructions) is not int or not 0 <= instructions < 1 << 62:
        raise BadValue("instructions")
    if state["v3d"]:
        for supply in supplies or ["clock"]:
            machine.v3d_bridge.switch(supply, True)
        if not supplies:
            machine.v3d_bridge.switch("clock", False)
    table = [(row, row.check(state["tables"][row.name])) for row in rows(machine)]
    display = _check_display(machine, state["display"])
    card = _check_card(machine, state["card"], archive)
    noise = noise_of(state["noise"], machine.memory)
    pages, sums = state["pages"], state["checksums"]
    restore_ram(machine.memory, pages, sums, archive, noise, in_place=in_place)
    card()
    _apply(machine, table, display)
    machine.counter.add(instructions - machine.counter.count)
    machine.bus.polls.kept = polls
    for core, saved, put_back in zip(cores, registers, scheduler, strict=True):
        put_back(core)
        if not core.parked:
            core.cpu.start(0, ())
            (state_cpu64 if core.cpu.WIDE else state_cpu).restore_cpu(core.cpu, saved)
        core.cpu.stale = True
    _restore_events(machine, events)
    for timer, (control, compare, offset) in zip(timers, settings, strict=True):
        timer.offset = offset
        timer.restore(control, compare)


def _check_timer(
    control: list[int], compare: list[int], offset: Sequence[int] = (0,)
) -> tuple[list[int], list[int], int]:
    """A core's timers; files of before have neither that of HYP mode nor CNTVOFF."""
    if not all(type(v) is int and 0 <= v < 1 << 64 for v in (*control, *compare, *offset)):
        raise BadValue("timers")
    missing = [0] * (len(UNITS) - len(control))
    if not 2 <= len(control) == len(compare) <= len(UNITS) or len(offset) != 1:
        raise BadValue("timers")
    return control + missing, compare + missing, offset[0]


def _apply(
    machine: Machine,
    table: list[tuple[Row, dict[str, Any]]],
    display: tuple[Geometry, list[Allocation], int, int],
) -> None:
    for row, values in table:
        row.restore(values)
    geometry, blocks, next_handle, shown = display
    framebuffer, pool = machine.videocore.framebuffer, machine.videocore.pool
    pool.blocks = {block.handle: block for block in blocks}
    pool._next_handle = next_handle
    framebuffer.geometry = geometry
    framebuffer.allocation = pool.blocks.get(shown)


def _check_card(machine: Machine, saved: dict[str, Any], archive: zipfile.ZipFile) -> Callable[[], None]:
    """Check the blocks written to the SD card, and give the function that puts them back."""
    written, erased = saved["written"], [tuple(item) for item in saved["erased"]]
    size = archive.getinfo("card.bin").file_size
    if size != len(written) * SECTOR or len(written) > MAX_KEPT or len(erased) > MAX_RANGES:
        raise BadValue("card")
    card = machine.card_slot() if written or erased or machine.card_slot.changed else None
    if card is None:
        if written or erased:
            raise StateError("the program had written to an SD card, but none is inserted now")
        return lambda: None
    places = [*written, *(place for item in erased for place in item)]
    if not all(type(place) is int and 0 <= place <= card.sectors for place in places):
        raise BadValue("card")
    if len(set(written)) != len(written) or card.sectors in written:
        raise BadValue("card")
    edges = [place for item in erased for place in item]
    if any(len(item) != 2 for item in erased) or edges != sorted(set(edges)):
        raise BadValue("card")
    data = archive.read("card.bin")
    if len(data) != size:
        raise BadValue("card")

    def restore() -> None:
        card.written = {sector: data[SECTOR * n : SECTOR * (n + 1)] for n, sector in enumerate(written)}
        card.erased = erased

    return restore


# -- the display -----------------------------------------------------------------------------------


def _snapshot_display(machine: Machine) -> dict[str, Any]:
    framebuffer, pool = machine.videocore.framebuffer, machine.videocore.pool
    return {
        "geometry": asdict(framebuffer.geometry),
        "blocks": [asdict(block) for block in pool.blocks.values()],
        "next_handle": pool._next_handle,
        "shown": framebuffer.allocation.handle if framebuffer.allocation else 0,
    }


def _check_display(machine: Machine, saved: dict[str, Any]) -> tuple[Geometry, list[Allocation], int, int]:
    pool = machine.videocore.pool
    wanted = saved["geometry"]
    if not all(type(value) is int for value in wanted.values()):
        raise BadValue("display")
    geometry = Geometry(**wanted)
    if geometry != geometry.sane():
        raise BadValue("display")
    blocks = [Allocation(**block) for block in saved["blocks"][:MAX_BLOCKS]]
    for block in blocks:
        numbers = (block.handle, block.address, block.size, block.flags)
        if not all(type(value) is int and value >= 0 for value in numbers):
            raise BadValue("memory")
        if block.address < pool.start or block.address + block.size > pool.end:
            raise BadValue("memory")
    shown, next_handle = saved["shown"], saved["next_handle"]
    sizes = {block.handle: block.size for block in blocks}
    if type(shown) is not int or type(next_handle) is not int or len(sizes) != len(blocks):
        raise BadValue("display")
    if shown and sizes.get(shown, 0) < geometry.size:
        raise BadValue("display")
    return geometry, blocks, max([next_handle, *(handle + 1 for handle in sizes)]), shown


# -- events ----------------------------------------------------------------------------------------

EventRow = tuple[str, Any, Any, Callable[[], None]]
"""Name, what holds the pending event and under which key, what it does."""


def _generic_timers(machine: Machine) -> list[Any]:
    return machine.local._timers if machine.local is not None else []


def _events(hardware: Hardware) -> list[EventRow]:
    """All but the vsync, which has its own moment."""
    timer, emmc, power, pcm = hardware.timer, hardware.emmc, hardware.power, hardware.pcm
    found: list[EventRow] = [
        (f"timer {channel}", timer._events, channel, partial(timer._match, channel)) for channel in range(4)
    ]
    for _start, block in hardware.bus.blocks:
        if isinstance(block, ArmTimer):
            found.append(("ARM timer", vars(block), "_event", block._expired))
    found.append(("EMMC", vars(emmc), "_event", emmc._step))
    found.append(("SDHOST", vars(hardware.sdhost), "_event", hardware.sdhost._step))
    found.append(("watchdog", vars(power), "_event", power.on_reset))
    found.append(("PCM", vars(pcm), "_event", pcm._update))
    for uart in (hardware.uart, hardware.mini_uart):
        found.append((f"{uart.NAME} line", vars(uart._queue), "_event", uart._queue._due))
    for dma in hardware.dma.channels:
        found.append((f"DMA {dma.NUMBER}", vars(dma), "_event", dma._step))
    for valve in hardware.pixel_valves.values():
        found.append((f"pixel valve {valve.NAME}", vars(valve), "_event", valve.blank))
    found.append(("TXP", vars(hardware.txp), "_event", hardware.txp.finish))
    local = hardware.local
    if local is not None:
        found.append(("local timer", vars(local), "_local_event", local._local_fired))
    return found


def _pending_events(machine: Machine) -> dict[str, int]:
    moments = {}
    for name, holder, key, _action in _events(machine.hardware):
        event: Event | None = holder[key]
        if event is not None and not event.cancelled:
            moments[name] = event.at
    return moments


def _restore_events(machine: Machine, events: dict[str, int]) -> None:
    clock = machine.clock
    clock._queue.clear()
    machine._schedule_vsync()
    for name, holder, key, action in _events(machine.hardware):
        if name in events:
            holder[key] = clock.at(events[name], action)
    machine.v3d_bridge.time.restored()
    machine.mailbox.restored()
