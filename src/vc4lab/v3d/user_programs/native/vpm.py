"""The VPM of user programs: setup words, generic access.

Whole rows (horizontal, 32 bit), which nearly all programs use, are inlined; other modes go through
one function that looks at the setup word for each lane.
"""

from __future__ import annotations

from vc4lab.qpu.isa.vpm_setup import LOAD_STRIDE_KIND, STORE_KIND, STORE_STRIDE_KIND
from vc4lab.simd import Value, any_, i32, i32x16, kernel, mask16, ptr, splat
from vc4lab.v3d.user_programs import state as st
from vc4lab.v3d.user_programs.state import QpuState, SharedState
from vc4lab.v3d.vpm.access import HORIZONTAL, element_offsets, first_address, take_setup, write_vector
from vc4lab.v3d.vpm.shader_rows import ROW_BYTES


def is_rows(setup: Value) -> Value:
    """i1: horizontal 32-bit access (size 2, or the reserved 3)."""
    return (setup & (HORIZONTAL | 1 << 9)) == (HORIZONTAL | 1 << 9)


@kernel(args=(ptr, ptr, i32, i32, i32x16, mask16))
def write_general(shared: Value, qpu: Value, setup: Value, address: Value, value: Value, mask: Value) -> None:
    """A vector in any mode."""
    common, state = SharedState.at(shared), QpuState.at(qpu)
    inside = element_offsets(setup, address) < splat(common.rows * ROW_BYTES)
    if any_(mask & ~inside):
        state.findings = state.findings | st.FINDING_VPM_WRITE
    write_vector(common.vpm, setup, address, value, mask & inside)


@kernel(args=(ptr, i32))
def setup_read(qpu: Value, word: Value) -> None:
    """A write of vr_setup."""
    state = QpuState.at(qpu)
    if word.shr(30) == 0:
        if ~take_setup(state.reads, word):
            state.findings = state.findings | st.FINDING_SETUP_IGNORED
    elif word.shr(30) == 1:
        state.findings = state.findings | st.FINDING_SETUP_RESERVED
    elif word.shr(28) == LOAD_STRIDE_KIND:
        state.load_stride = word
    else:
        state.load_setup = word


@kernel(args=(ptr, i32))
def setup_write(qpu: Value, word: Value) -> None:
    """A write of vw_setup."""
    state = QpuState.at(qpu)
    kind = word.shr(30)
    if kind == 0:
        state.write_setup = word
        state.write_address = first_address(word)
    elif kind == STORE_KIND:
        state.store_setup = word
    elif kind == STORE_STRIDE_KIND:
        state.store_stride = word
    else:
        state.findings = state.findings | st.FINDING_SETUP_RESERVED
