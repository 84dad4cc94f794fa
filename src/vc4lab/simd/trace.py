"""Keeps what is being traced: the module and the function under construction, as LLVM text."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vc4lab.simd.target import Target

_PACKAGE = __name__.rpartition(".")[0]


Known = tuple[dict[str, str], dict[str, str], dict[str, str]]
"""Results computed, loads made, values of cells."""


class Edge:
    """A jump whose destination is not known yet: a reserved line at the end of `block`."""

    __slots__ = ("block", "line", "state")

    def __init__(self, block: str, line: int, state: Any) -> None:
        self.block = block
        self.line = line
        self.state = state


class FunctionTrace:
    """One LLVM function being written. `block` is None while the place being traced is dead."""

    eager: Any = None
    """The executor of each operation at once, where nothing is written (`eager.py`)."""

    def __init__(self, module: ModuleTrace, name: str) -> None:
        self.module = module
        self.name = name
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.block: str | None = "entry.0"
        self._count = 0
        self._known: dict[str, str] = {}  # results already computed in this block
        self._loaded: dict[str, str] = {}  # the same of loads, until memory is written
        self._cells: dict[str, str] = {}  # what cells hold, as far as this block knows
        self._stores: dict[str, int] = {}  # the line of a cell's last store in this block
        self.offsets: dict[str, tuple[str, int]] = {}  # pointers: what they are counted from
        self.casts: dict[str, Any] = {}  # results of bitcasts: the value before
        self.splats: dict[str, Any] = {}  # vectors with equal lanes: the scalar
        self.compares: dict[str, tuple[str, ...]] = {}  # kind, test, type, operands

    # -- instructions
    def emit(self, text: str) -> None:
        """Appends an instruction that writes memory; nothing is written at a dead place."""
        if self.block is not None:
            self.lines.append(text)
            self._loaded.clear()

    def assign(self, text: str) -> str:
        """Appends an instruction and returns the name of its result."""
        self._count += 1
        name = f"%v{self._count}"
        if self.block is not None:
            self.lines.append(f"{name} = {text}")
        return name

    def call(self, text: str) -> str:
        """As assign(), for an instruction that may write memory or change the float mode."""
        self.invalidate()
        return self.assign(text)

    def once(self, text: str) -> str:
        """Like assign(), but the same instruction is written once per block.

        For instructions without effects that give the same result wherever they stand.
        """
        name = self._known.get(text)
        if name is None:
            self._count += 1
            name = f"%v{self._count}"
            if self.block is not None:
                self.lines.append(f"{name} = {text}")
                self._known[text] = name
        return name

    def load(self, text: str) -> str:
        """Like once(), for a load: written again after anything that may have written memory."""
        name = self._loaded.get(text)
        if name is None:
            name = self.assign(text)
            if self.block is not None:
                self._loaded[text] = name
        return name

    def invalidate(self) -> None:
        """Let nothing that was computed or loaded be used from here on (cells keep their values)."""
        self._known.clear()
        self._loaded.clear()

    # -- cells: stack slots that nothing but these two touches
    def read_cell(self, slot: str, load: str) -> str:
        """The name of what the cell holds; `load` is the instruction, if it is not known."""
        name = self._cells.get(slot)
        if name is None:
            name = self.assign(load)
            if self.block is not None:
                self._cells[slot] = name
        return name

    def write_cell(self, slot: str, value: str, store: str) -> None:
        """Writes a cell by the instruction `store`; only the last of a block is kept."""
        if self.block is None or self._cells.get(slot) == value:
            return
        before = self._stores.get(slot)
        if before is not None:
            self.lines[before] = ""
        self._cells[slot] = value
        self._stores[slot] = len(self.lines)
        self.lines.append(store)

    def _invalidate_block(self) -> None:
        self.invalidate()
        self._cells.clear()
        self._stores.clear()

    def alloca(self, type_text: str, align: int) -> str:
        """A stack slot in the entry block, whatever loop is being traced."""
        self._count += 1
        name = f"%a{self._count}"
        self.allocas.append(f"{name} = alloca {type_text}, align {align}")
        return name

    # -- blocks
    def new_label(self, hint: str = "b") -> str:
        self._count += 1
        return f"{hint}.{self._count}"

    def start(self, label: str, known: Known | None = None) -> None:
        """Opens the block `label`; its caller has closed the one before.

        known: what `knowledge()` gave at the end of the only block from which one gets here.
        """
        self.lines.append(f"{label}:")
        self.block = label
        self._stores.clear()
        if known is None:
            self._invalidate_block()
        else:
            self._known, self._loaded, self._cells = (dict(part) for part in known)

    def knowledge(self) -> Known:
        """Return what is known at this place, for blocks that only come after it."""
        return dict(self._known), dict(self._loaded), dict(self._cells)

    def terminate(self, text: str) -> None:
        """Ends the current block with `text`; what follows is dead until a block starts."""
        if self.block is not None:
            self.lines.append(text)
            self.block = None

    def leave(self, state: Any = None) -> Edge | None:
        """Ends the current block with a jump to be decided later (None if already dead)."""
        if self.block is None:
            return None
        edge = Edge(self.block, len(self.lines), state)
        self.lines.append("")
        self.block = None
        return edge

    def connect(self, edge: Edge, label: str) -> None:
        self.lines[edge.line] = f"br label %{label}"

    def mark(self) -> tuple[int, str | None]:
        """This place, for roll_back()."""
        self._stores.clear()  # stores before it are not to vanish because of one after it
        return len(self.lines), self.block

    def roll_back(self, mark: tuple[int, str | None]) -> None:
        """Forgets everything written since `mark`."""
        del self.lines[mark[0] :]
        self._invalidate_block()
        self.block = mark[1]

    def text(self, header: str) -> str:
        entry = "".join(f"  {line}\n" for line in self.allocas)
        body = "\n".join(self.lines)
        return f"{header} {{\nentry:\n{entry}  br label %entry.0\nentry.0:\n{body}\n}}\n"


class ModuleTrace:
    """One LLVM module being written: functions, constant tables, declarations."""

    def __init__(self, target: Target, float_mode: str) -> None:
        self.target = target
        self.float_mode = float_mode
        self.functions: list[str] = []
        self.globals: list[str] = []
        self.declarations: dict[str, str] = {}
        self.kernels: dict[int, tuple[Any, str]] = {}
        self._tables: dict[tuple[str, str, bool], str] = {}
        self._count = 0

    def unique(self, hint: str) -> str:
        self._count += 1
        clean = "".join(c if c.isalnum() and c.isascii() else "_" for c in hint)
        return f"{clean}.{self._count}"

    def declare(self, name: str, signature: str) -> str:
        """Declares `name` once; `signature` is like `i32 @{} (i32, i32)`. Returns the name."""
        if name not in self.declarations:
            self.declarations[name] = "declare " + signature.format(name)
        return name

    def table(self, type_text: str, initial: str, align: int, opaque: bool) -> str:
        """The name of a constant (or, if opaque, unfoldable) global with this content."""
        known = self._tables.get((type_text, initial, opaque))
        if known is None:
            known = "@" + self.unique("opaque" if opaque else "table")
            linkage = "hidden global" if opaque else "private unnamed_addr constant"
            self.globals.append(f"{known} = {linkage} {type_text} {initial}, align {align}")
            self._tables[(type_text, initial, opaque)] = known
        return known

    def text(self) -> str:
        parts = [f'target triple = "{self.target.triple}"\n']
        parts += [line + "\n" for line in self.globals]
        parts += [line + "\n" for line in self.declarations.values()]
        parts += self.functions
        parts.append(f"attributes #0 = {{ nounwind {self.target.attributes} }}\n")
        parts.append(f"attributes #1 = {{ nounwind noinline {self.target.attributes} }}\n")
        parts.append("!0 = !{}\n")
        return "".join(parts)


class _State(threading.local):
    def __init__(self) -> None:
        self.stack: list[FunctionTrace] = []


_state = _State()


def tracing() -> bool:
    """Is this thread inside a kernel being traced?"""
    return bool(_state.stack)


def current() -> FunctionTrace:
    """The function being traced by this thread."""
    stack = _state.stack
    if not stack:
        raise RuntimeError(
            "staged values exist only while a kernel is traced: call this from a @kernel that "
            "build() compiles"
        )
    return stack[-1]


@contextmanager
def entered(trace: FunctionTrace) -> Iterator[FunctionTrace]:
    """Makes `trace` the function being traced by this thread."""
    _state.stack.append(trace)
    try:
        yield trace
    finally:
        _state.stack.pop()


def function_trace(module: ModuleTrace, name: str) -> AbstractContextManager[FunctionTrace]:
    return entered(FunctionTrace(module, name))


def user_place() -> str:
    """`file:line` of the innermost caller outside this package, for messages."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE + "."):
        frame = frame.f_back
    if frame is None:
        return "?"
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def staged_error(message: str) -> TypeError:
    """A TypeError that says where in the user's kernel it happened."""
    return TypeError(f"{message} (at {user_place()})")
