"""Native code of user programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.qpu.jit.region import Region
from vc4lab.qpu.jit.resumable import emit_resumable
from vc4lab.simd import Function, NativeFunction, Target, Value, build, i32, ptr
from vc4lab.v3d.user_programs.recording.environment import environment_of

if TYPE_CHECKING:
    from vc4lab.v3d.unknowns import Unknowns
    from vc4lab.v3d.user_programs.watching.watch import Watched


def compile_user_program(
    region: Region,
    unknowns: Unknowns,
    limited: bool,
    target: Target | None = None,
    watched: Watched | None = None,
    stops: bool = False,
    recorded: bool = False,
) -> NativeFunction:
    """(SharedState address, QpuState address) -> Status, of a region. Raises Unsupported.

    watched: the program reports to its watch what is wrong; stops: and ends there. recorded: its
    way is recorded.
    """
    flow = region.flow
    program = flow.program

    def body(shared: Value, qpu: Value) -> Value:
        state_of = shared, qpu, program, unknowns, limited
        env = environment_of(*state_of, watched, stops, recorded)
        if region.is_part:  # what other regions leave in the TMUs' queues is not known here
            env.textured = frozenset((0, 1))
        state = env.qpu
        saved = state.saved
        state.resume = emit_resumable(region, env, state.resume, saved, settings=unknowns)
        env.leave()
        return env.status.get()

    entry = Function((ptr, ptr), i32, body, "user_program")
    name = f"{program.digest} {unknowns.digest()} {limited} {flow.start} {flow.most} {region.brief}"
    if watched is not None:
        name += f" watched {stops}"
    if recorded:
        name += " recorded"
    return build("user program", {"run": entry}, target=target, key=name)["run"]
