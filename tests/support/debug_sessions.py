"""Sessions for tests: a program, its memory, and a digest of all that it may change."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import vc4lab
from vc4lab.debug.programs import ProgramStage
from vc4lab.debug.session import Session
from vc4lab.debug.source import Source
from vc4lab.debug.state import REGISTERS
from vc4lab.diagnostics import Reporter
from vc4lab.qpu.dialects.choose import assemble_source
from vc4lab.v3d.user_programs.experiment import Experiment

SAXPY = vc4lab.examples() / "qpu" / "saxpy.qasm"


def experiment_of(code: bytes, areas: Sequence[str] = (), budget: int | None = None) -> Experiment:
    experiment = Experiment(code, engine="interpreter", budget=budget, reporter=Reporter())
    for area in areas:
        experiment.add_area(area)
    return experiment


def session_of(
    text: str,
    qpus: int = 1,
    uniforms: Sequence[str] = (),
    areas: Sequence[str] = (),
    budget: int | None = None,
) -> Session:
    """A session of a source that is in no file."""
    assembly = assemble_source(text)
    source = Source.of(Path("program.qasm"), assembly, text=text)
    return Session(ProgramStage(experiment_of(assembly.bytes, areas, budget), source, qpus, uniforms))


def saxpy(qpus: int = 2, vectors: int = 8) -> Session:
    """y = 2 x + y with x = 0, 1, 2, … and y = 1."""
    assembly = assemble_source(SAXPY.read_text(), path=str(SAXPY))
    size = 64 * vectors
    experiment = experiment_of(assembly.bytes, [f"x={size}", f"y={size}"])
    x, y = (experiment.areas[name].address for name in "xy")
    experiment.memory.array(x, 16 * vectors, "f4")[:] = np.arange(16 * vectors)
    experiment.memory.array(y, 16 * vectors, "f4")[:] = 1
    stream = f"x + 64*qpu, y + 64*qpu, 2.0, {64 * qpus}, {vectors // qpus}"
    return Session(ProgramStage(experiment, Source.of(SAXPY, assembly), qpus, [stream]))


def floats(session: Session, name: str) -> list[float]:
    area = session.experiment.areas[name]
    found: list[float] = session.memory.array(area.address, area.size // 4, "f4").tolist()
    return found


def digest(session: Session) -> str:
    """Of memory, VPM, synchronisation, and each QPU's registers, flags, queues, streams."""
    found = hashlib.sha256()
    for area in session.experiment.areas.values():
        found.update(session.memory.read(area.address, area.size))
    found.update(session.stage.vpm_rows().tobytes())
    shared = session.stage.shared
    assert shared is not None
    found.update(repr((int(shared.mutex), list(shared.semaphores), list(shared.interrupts))).encode())
    for number, qpu in session.qpus.items():
        view = session.view(number)
        for _, key in REGISTERS:
            found.update(np.array(view.register(key), np.uint32).tobytes())
        for name in "znc":
            found.update(np.array(view.flag(name)).tobytes())
        rest = view.setups(), view.tmu(0), view.tmu(1), view.pending(), view.due(), view.state, view.waits
        found.update(repr((rest, qpu.machine.count, qpu.next_address, qpu.uniform_address)).encode())
    found.update(repr([(turn, str(item)) for turn, item in session.messages]).encode())
    return found.hexdigest()
