"""The CPU's slice counter: a native hook at each basic block that counts instructions and stops.

The hook is a few instructions of machine code inside the CPU engine's own loop; in Python it would
cost a hundred times the guest's code. It also leaves the address of the running block for messages.
"""

from __future__ import annotations

import ctypes
from functools import cache

_IR = """
define void @block(i8* %engine, i64 %address, i32 %size, i64* %state) {{
  %count = load i64, i64* %state
  %limit.at = getelementptr i64, i64* %state, i64 1
  %limit = load i64, i64* %limit.at
  %place = getelementptr i64, i64* %state, i64 2
  %shift.at = getelementptr i64, i64* %state, i64 3
  %shift = load i64, i64* %shift.at
  store i64 %address, i64* %place
  %go = icmp slt i64 %count, %limit
  br i1 %go, label %run, label %stop
run:
  %bytes = zext i32 %size to i64
  %instructions = lshr i64 %bytes, %shift
  %total = add i64 %count, %instructions
  store i64 %total, i64* %state
  ret void
stop:
  %emu.stop = inttoptr i64 {stop} to i32 (i8*)*
  %result = call i32 %emu.stop(i8* %engine)
  ret void
}}
"""


@cache
def _block_hook(stop_function: int) -> tuple[int, object]:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(_IR.format(stop=stop_function))
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine.get_function_address("block"), engine


class SliceCounter:
    """Instructions executed (`count`) and where to stop (`limit`), shared with native code."""

    def __init__(self) -> None:
        self._state = (ctypes.c_int64 * 4)()
        self._state[3] = 2

    @property
    def count(self) -> int:
        """Instructions executed since power-on, exact at the ends of basic blocks."""
        return self._state[0]

    @property
    def limit(self) -> int:
        """The CPU stops at the first basic block at which `count` has reached this."""
        return self._state[1]

    @limit.setter
    def limit(self, value: int) -> None:
        self._state[1] = min(value, (1 << 63) - 1)

    def add(self, instructions: int) -> None:
        """Count work that is not an instruction."""
        self._state[0] += instructions

    @property
    def block(self) -> int:
        """Guest address of the basic block begun last."""
        return self._state[2]

    def stop(self) -> None:
        """Stop the CPU at the end of the basic block that is running."""
        self._state[1] = 0

    @property
    def address(self) -> int:
        """Host address of the shared state."""
        return ctypes.addressof(self._state)

    def hook(self, stop_function: int) -> int:
        """Host address of the hook; `stop_function` is the engine's own stop call."""
        return _block_hook(stop_function)[0]
