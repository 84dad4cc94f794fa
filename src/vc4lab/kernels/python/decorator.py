"""`@qpu_kernel`: a Python function becomes a QPU program, and then is a `Kernel` like any other."""

from __future__ import annotations

import functools
import inspect
import linecache
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, get_args, get_origin, overload

from vc4lab.kernels.interface import MOST_ARGUMENTS, TYPES, Argument, Interface
from vc4lab.kernels.kernel import Kernel, Program
from vc4lab.kernels.python import flow
from vc4lab.kernels.python.memory import Array, Out
from vc4lab.kernels.python.trace import Expression, KernelSourceError, NeedsPointer, Trace, tracing
from vc4lab.kernels.python.values import Vector
from vc4lab.qpu.isa.encoding import BRANCH_DELAY_SLOTS, INSTRUCTION_BYTES
from vc4lab.qpu.isa.operations import Signal
from vc4lab.qpu.machine.code import Const, Streamed, TooComplex
from vc4lab.qpu.machine.fold import fold, keep
from vc4lab.qpu.machine.output import Scheduled, end
from vc4lab.qpu.machine.policies import POLICIES, SPARING, Policy
from vc4lab.qpu.machine.schedule import schedule
from vc4lab.qpu.text.assembly import Assembly
from vc4lab.qpu.text.disassembler import disassemble
from vc4lab.simd.rewrite import rewrite

F = TypeVar("F", bound=Callable[..., Any])


def qpu_function(function: F) -> F:
    """A function that kernels call: its `if` and `for` are those of the kernel, too."""
    made = _rewritten(_plain(function))
    return functools.update_wrapper(made, function)  # type: ignore[return-value]


def _rewritten(function: FunctionType) -> FunctionType:
    """The function with statements that are those of kernels. Raises KernelSourceError."""
    try:
        return rewrite(function, flow)
    except (TypeError, SyntaxError) as error:
        code = function.__code__
        raise KernelSourceError(str(error), code.co_filename, code.co_firstlineno) from None


def _plain(function: Any) -> FunctionType:
    if not isinstance(function, FunctionType):
        raise KernelSourceError(f"a kernel is a plain function, not {type(function).__name__}")
    return function


class PythonKernel(Kernel):
    """A kernel whose program is made of a Python function, when it is first wanted.

    sizes: of arrays that only come out, what the interface of kernels would say; without them such an
    array has the shape of the first one that comes in. Raises KernelSourceError when it is first used.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        sizes: dict[str, str] | None = None,
        *,
        engine: str = "jit",
        threads: int | None = None,
    ) -> None:
        self.function = _plain(function)
        self._sizes = sizes or {}
        self.engine, self.threads = engine, threads
        self.report = self.timed = None
        self.budget, self.check = None, True
        functools.update_wrapper(self, function)

    @cached_property
    def program(self) -> Program:
        """The program, compiled."""
        file = self.function.__code__.co_filename
        arguments = self._arguments()
        done = _compiled(self.function, arguments, file)
        words = tuple(end(done.words))
        lines = linecache.getlines(file)
        assembly = Assembly(words, {self.function.__name__: 0}, lines=tuple(_lines(done, words, lines)))
        interface = Interface(
            self.function.__name__,
            tuple(argument for argument, _ in arguments),
            tuple(map(_text, done.uniforms)),
        )
        return Program(Path(file), "".join(lines), assembly.bytes, assembly, interface)

    def _arguments(self) -> list[tuple[Argument, type[Any]]]:
        """The arguments as the annotations say, and the types that they are in the kernel."""
        function = self.function
        file, line = function.__code__.co_filename, function.__code__.co_firstlineno
        try:
            annotations = inspect.get_annotations(function, eval_str=True)
        except Exception as error:
            raise KernelSourceError(f"an annotation cannot be evaluated: {error}", file, line) from None
        found: list[tuple[Argument, type[Any]]] = []
        for name, parameter in inspect.signature(function).parameters.items():
            annotation = annotations.get(name)
            where = file, line
            if annotation is None or parameter.kind not in (
                parameter.POSITIONAL_OR_KEYWORD,
                parameter.KEYWORD_ONLY,
            ):
                raise KernelSourceError(
                    f"argument {name} needs a type: Float, Int, Uint, Array[…], InOut[…] or Out[…]", *where
                )
            if name in ("qpu", "qpus", "uniforms"):
                raise KernelSourceError(f"{name} cannot be the name of an argument", *where)
            found.append(self._argument(name, annotation, parameter.default, found, where))
        if len(found) > MOST_ARGUMENTS:
            raise KernelSourceError(f"more than {MOST_ARGUMENTS} arguments", file, line)
        for name in self._sizes:
            if not any(argument.name == name for argument, _ in found):
                raise KernelSourceError(f"there is no argument {name} that has a size", file, line)
        return found

    def _argument(
        self, name: str, annotation: Any, default: Any, before: list[Any], where: tuple[str, int]
    ) -> tuple[Argument, type[Any]]:
        origin = get_origin(annotation) or annotation
        numbers = {float: "float", int: "int"}
        if isinstance(origin, type) and issubclass(origin, Array):
            kinds = get_args(annotation)
            kind = getattr(kinds[0], "kind", "") if kinds else ""
            if kind not in TYPES:
                raise KernelSourceError(
                    f"argument {name}: {origin.__name__}[Float], [Int] or [Uint] is an array", *where
                )
            sizes: tuple[str, ...] = ()
            if issubclass(origin, Out):
                like = next((one.name for one, _ in before if one.is_array), "")
                sizes = tuple(part.strip() for part in self._sizes.get(name, like).split(",") if part.strip())
                if not sizes:
                    raise KernelSourceError(
                        f"argument {name} only comes out: say its size, @qpu_kernel({name}='16, 4')", *where
                    )
            return Argument(name, kind, True, origin.direction, sizes), annotation
        kind = numbers.get(origin, getattr(origin, "kind", ""))
        if kind not in ("float", "int", "uint"):
            raise KernelSourceError(
                f"argument {name}: {origin!r} is no type of an argument (Float, Int, Uint, Array[…])", *where
            )
        given = None if default is inspect.Parameter.empty else str(default)
        return Argument(name, kind, False, "in", (), given), _TYPES[kind]


def _types() -> dict[str, type[Vector]]:
    from vc4lab.kernels.python.values import Float, Int, Uint

    return {"float": Float, "int": Int, "uint": Uint}


_TYPES = _types()


def _text(word: Streamed) -> str:
    """A word of the uniform stream, as the interface of kernels writes it."""
    if isinstance(word, Const):
        return str(word.word)
    return word.text if isinstance(word, Expression) else "uniforms"


def _trace(function: FunctionType, arguments: list[tuple[Argument, type[Any]]], trace: Trace) -> None:
    """One run of the function."""
    with tracing(trace):
        given: dict[str, Any] = {}
        for argument, kind in arguments:
            if argument.is_array:
                array, item = get_origin(kind) or kind, get_args(kind)[0]
                given[argument.name] = array.argument(argument.name, item, trace)
            else:
                given[argument.name] = kind.of(trace.uniform(argument.name))
        result = _rewritten(function)(**given)
        if result is not None:
            trace.fail("a kernel returns nothing: store what comes out in an array Out[…]")
        if trace.outstanding:
            message = f"{trace.outstanding} requests of gather() are never received"
            raise KernelSourceError(message, trace.file, trace.gathered_in)


def _compiled(function: FunctionType, arguments: list[tuple[Argument, type[Any]]], file: str) -> Scheduled:
    """The best of several ways to schedule; if registers do not suffice, with few values kept."""
    line = function.__code__.co_firstlineno
    has_pointer = False
    best: Scheduled | None = None
    size = 0
    for policy, is_sparing in WAYS:
        if best is not None and (is_sparing or policy in LAST or size > policy.most):
            continue
        trace = Trace(file, has_pointer, is_sparing)
        try:
            _trace(function, arguments, trace)
        except NeedsPointer:
            has_pointer = True
            trace = Trace(file, has_pointer, is_sparing)
            _trace(function, arguments, trace)
        except RecursionError:
            raise KernelSourceError("the kernel calls itself without end", file, line) from None
        blocks = trace.code.blocks
        fold(blocks)
        keep(blocks)
        size = sum(len(block.ops) for block in blocks)
        try:
            done = schedule(blocks, (), half=False, policy=policy, base=trace.base)
        except TooComplex as error:
            line = error.line or line
            continue
        if best is None or done.cost < best.cost:
            best = done
    if best is None:
        message = "too many values are needed at the same time: 64 registers do not suffice"
        raise KernelSourceError(message, file, line)
    return best


IN_FILES = Policy(readers=-1), Policy(readers=-1, in_order=True)
"""Accumulators are for what needs them: many rotations at a time cannot wait for one."""
LAST = (*SPARING[:1], *IN_FILES)
WAYS = (
    *((policy, False) for policy in (*POLICIES, *LAST)),
    *((policy, True) for policy in (POLICIES[0], *LAST)),
)
"""Ways to schedule, and whether few values are kept."""


def _lines(done: Scheduled, words: tuple[int, ...], source: list[str]) -> list[tuple[int, str]]:
    """For each word its line, and what it does with that line as a comment."""
    numbers = [max((op.line for op in ops), default=0) for ops in done.ops]
    numbers += [0] * (len(words) - len(numbers))
    branches = [index for index, word in enumerate(words) if word >> 60 == Signal.BRANCH]
    slots = {index + distance for index in branches for distance in range(1 + BRANCH_DELAY_SLOTS)}
    for index in range(1, len(numbers)):
        if not numbers[index] and index in slots:
            numbers[index] = numbers[index - 1]
    for index in range(len(numbers) - 2, -1, -1):
        numbers[index] = numbers[index] or numbers[index + 1]
    found = []
    last = 0
    for index, (word, line) in enumerate(zip(words, numbers, strict=True)):
        line = line or last
        text = disassemble(word, INSTRUCTION_BYTES * index).partition("#")[0].rstrip()
        if line != last and 0 < line <= len(source):
            text = f"{text:<48}  # {line}: {source[line - 1].strip()}"
        found.append((line, text))
        last = line
    return found


@overload
def qpu_kernel(function: Callable[..., Any], /) -> PythonKernel: ...
@overload
def qpu_kernel(**sizes: str) -> Callable[[Callable[..., Any]], PythonKernel]: ...


def qpu_kernel(function: Any = None, /, **sizes: str) -> Any:
    """Make a `Kernel` of a function: `@qpu_kernel`, or `@qpu_kernel(z="len(x), 16")` with the sizes of
    arrays that only come out.
    """
    if function is not None:
        return PythonKernel(function)
    return lambda made: PythonKernel(made, sizes)
