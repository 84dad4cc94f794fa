"""Native code of user programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.qpu.resumable import emit_resumable
from vc4lab.simd import Function, NativeFunction, Target, build, i32, ptr
from vc4lab.v3d.compute.staged_environment import StagedUserEnvironment

if TYPE_CHECKING:
    from vc4lab.qpu.program import Program
    from vc4lab.v3d.compute.watch import Watched
    from vc4lab.v3d.unknowns import Unknowns


def compile_user_program(
    program: Program,
    unknowns: Unknowns,
    limited: bool,
    learned: frozenset[int] = frozenset(),
    target: Target | None = None,
    watched: Watched | None = None,
    stops: bool = False,
) -> NativeFunction:
    """(SharedState address, QpuState address) -> Status. Raises Unsupported.

    learned: instructions that register branches go to, besides the likely ones. watched: the
    program tells its watch what is wrong; stops: and ends there.
    """

    def body(shared: Any, qpu: Any) -> Any:
        if watched is None:
            env = StagedUserEnvironment(shared, qpu, program, unknowns, limited)
        else:
            from vc4lab.v3d.compute.watched_native import StagedWatchedEnvironment

            env = StagedWatchedEnvironment(shared, qpu, program, unknowns, limited, watched, stops)
        state: Any = env.qpu
        saved = state.field_ptr("saved")
        state.resume = emit_resumable(
            program, env, state.resume, saved, settings=unknowns, learned=learned
        )
        env.leave()
        return env.status.get()

    entry = Function((ptr, ptr), i32, body, "user_program")
    name = f"{program.digest} {unknowns.digest()} {limited} {sorted(learned)}"
    if watched is not None:
        name += f" watched {stops}"
    return build("user program", {"run": entry}, target=target, key=name)["run"]
