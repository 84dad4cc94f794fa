"""`@qpu`: a function of instructions becomes a `Kernel`, by way of the assembler."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

from vc4lab.kernels.assembly.instructions import Label, Recorder, recording
from vc4lab.kernels.assembly.names import NAMES
from vc4lab.kernels.interface import InterfaceError, parse
from vc4lab.kernels.kernel import Kernel, Program
from vc4lab.kernels.python.trace import KernelSourceError
from vc4lab.qpu.text.assembler import AssemblyError, assemble


class AssemblyKernel(Kernel):
    """A kernel whose instructions are those that a function makes, when it is first wanted.

    interface: as in comments of a source, "kernel name(…)" and "uniforms …". Raises
    KernelSourceError when it is first used.
    """

    def __init__(
        self, function: Callable[..., Any], interface: str, *, engine: str = "jit", threads: int | None = None
    ) -> None:
        if not isinstance(function, FunctionType):
            raise KernelSourceError(f"a kernel is a plain function, not {type(function).__name__}")
        self.function, self._interface_text = function, interface
        self.engine, self.threads = engine, threads
        self.report = self.timed = None
        self.budget, self.check = None, True
        functools.update_wrapper(self, function)

    @cached_property
    def program(self) -> Program:
        """The program, assembled."""
        code = self.function.__code__
        file, first = code.co_filename, code.co_firstlineno
        try:
            interface = parse("".join(f"# {line.strip()}\n" for line in self._interface_text.splitlines()))
        except InterfaceError as error:
            raise KernelSourceError(str(error), file, first) from None
        if interface is None:
            raise KernelSourceError('@qpu("kernel name(arguments)"): the interface is missing', file, first)
        with recording(Recorder(file=file)) as made:
            self.function(*[SimpleNamespace(**NAMES)] * code.co_argcount)
        lines = [
            (f"{one.name}:" if isinstance(one, Label) else one.text(), line)
            for one, line in made.lines
            if not (isinstance(one, Label) and one.is_target_only)
        ]
        try:
            assembly = assemble("".join(f"{text}\n" for text, _ in lines))
        except AssemblyError as error:
            raise KernelSourceError(
                _shown(error, lines, file), file, _line(error.errors[0].line, lines)
            ) from None
        source = linecache.getlines(file)
        mapped = []
        before = 0
        for number, text in assembly.lines:
            line = _line(number, lines)
            shown = source[line - 1].strip() if 0 < line <= len(source) and line != before else ""
            mapped.append((line, f"{text.strip():<48}  # {line}: {shown}" if shown else text.strip()))
            before = line
        assembly = replace(assembly, lines=tuple(mapped))
        return Program(Path(file), "".join(source), assembly.bytes, assembly, interface)


def _line(number: int, lines: list[tuple[str, int]]) -> int:
    """The line of Python of a line of the assembler."""
    return lines[number - 1][1] if 0 < number <= len(lines) else 0


def _shown(error: AssemblyError, lines: list[tuple[str, int]], file: str) -> str:
    first, *rest = error.errors
    more = [f"{file}:{_line(one.line, lines)}: {one.message}" for one in rest]
    return "\n".join([f"{first.message} (`{lines[first.line - 1][0]}`)", *more])


def qpu(interface: str) -> Callable[[Callable[..., Any]], AssemblyKernel]:
    """Make a `Kernel` of a function of instructions: `@qpu("kernel f(x: float[], out z: float[x])")`."""
    return lambda function: AssemblyKernel(function, interface)
