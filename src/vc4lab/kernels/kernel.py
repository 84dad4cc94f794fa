"""A QPU program as a function: numpy arrays and numbers in, numpy arrays out.

saxpy = vc4lab.Kernel("saxpy.qasm")
y = saxpy(x, y, a=2.0, qpus=12)
saxpy.timing(x, y, a=2.0).text()
session = saxpy.debug(x, y, a=2.0)
"""

from __future__ import annotations

import html
import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from vc4lab.diagnostics import Diagnostic, Reporter, Severity
from vc4lab.files import read_file
from vc4lab.kernels.interface import TYPES, Argument, Interface, InterfaceError, parse, value_of, word_of
from vc4lab.qpu.isa.encoding import INSTRUCTION_BYTES
from vc4lab.qpu.text.assembler import Assembly, assemble
from vc4lab.qpu.text.syntax import MAX_SOURCE
from vc4lab.ranges import QPU_COUNT
from vc4lab.v3d.user_programs.experiment import CODE, Experiment, Report, uniforms_address

if TYPE_CHECKING:
    import numpy

    from vc4lab.debug.session import Session
    from vc4lab.timing.chip import Chip
    from vc4lab.timing.result import Timing

SHOWN_OPEN = 60
"""Instructions of a listing that a notebook shows at once."""
MOST_BYTES = 512 << 20
"""Bytes of one array."""
Number: TypeAlias = "int | float"


class Program(NamedTuple):
    """Holds what a kernel runs. text: its source, read from `path`; assembly: None of bare words."""

    path: Path
    text: str
    code: bytes
    assembly: Assembly | None
    interface: Interface


class KernelError(Exception):
    """The program did not end, or did what is an error; the message has the diagnostics."""


class KernelWarning(UserWarning):
    """Shows a diagnostic that warns or hints."""


class Kernel:
    """A QPU program with an interface (`kernels/interface.py`): call it with its arguments.

    Parameters
    ----------
    source
        A file of QPU assembly, or its text (with a line end), or the program's 64-bit words.
    interface
        What the source's comments do not say: "kernel name(…)" and "uniforms …", a line each.
    engine, threads, budget, check
        How the program is executed, after how many instructions it counts as endless, and whether it is
        checked before and watched while it runs: as for `vc4lab run`.

    Raises AssemblyError, InterfaceError, OSError.

    Attributes
    ----------
    report
        How the last call went: instructions, seconds. None before the first.
    timed
        What `timing` gave last.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Iterable[int],
        *,
        interface: str = "",
        engine: str = "jit",
        threads: int | None = None,
        budget: int | None = None,
        check: bool = True,
    ) -> None:
        text, path = "", Path("kernel")
        assembly: Assembly | None = None
        if isinstance(source, str | os.PathLike):
            text = _text(source)
            if not isinstance(source, str) or "\n" not in source:
                path = Path(source)
            assembly = assemble(text)
            code = assembly.bytes
        else:
            code = b"".join(int(word).to_bytes(8, "little") for word in source)
        lines = interface.splitlines()
        declared = "".join(f"# {line.lstrip('#/; ')}\n" for line in lines) or text
        found = parse(declared)
        if found is None:
            raise InterfaceError(
                "the source has no line `# kernel NAME(ARGUMENTS)`, and no interface was given"
            )
        self._program = Program(path, text, code, assembly, found)
        self.engine, self.threads, self.budget, self.check = engine, threads, budget, check
        self.report: Report | None = None
        self.timed: Timing | None = None

    @property
    def program(self) -> Program:
        """Return the program that is run."""
        return self._program

    @property
    def interface(self) -> Interface:
        """Return its arguments and the expressions of its uniforms."""
        return self.program.interface

    @property
    def code(self) -> bytes:
        """Its words."""
        return self.program.code

    @property
    def assembly(self) -> Assembly | None:
        """Its words with their source lines; None of bare words."""
        return self.program.assembly

    def __repr__(self) -> str:
        return f"<Kernel {self.interface}: {len(self.code) // 8} instructions>"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the interface, the last timing, the listing (a long one folded)."""
        count = len(self.code) // 8
        shown = f"<b>{html.escape(str(self.interface))}</b>: {count} instructions"
        if self.timed is not None:
            shown += f"<pre>{html.escape(self.timed.text())}</pre>"
        if self.assembly is None:
            return shown
        text = f"<pre>{html.escape(self.assembly.listing())}</pre>"
        is_open = " open" if count <= SHOWN_OPEN else ""
        return f"{shown}<details{is_open}><summary>listing</summary>{text}</details>"

    def __call__(self, *values: Any, qpus: int = 1, **named: Any) -> Any:
        """Run the program on so many QPUs; what comes out: an array, or a tuple of several.

        Arrays that are passed are not changed. Raises InterfaceError for arguments that do not
        fit, KernelError for what is an error of the program. Warns with KernelWarning.
        """
        return self._run(values, named, qpus, None)

    def timing(
        self, *values: Any, qpus: int = 1, chip: Chip | str = "videocore4", board: str = "", **named: Any
    ) -> Timing:
        """How long the chip takes for such a call: clocks, stalls, milliseconds on each board."""
        from vc4lab.timing.user_programs import ProgramTiming

        timing = ProgramTiming(chip, board)
        self._run(values, named, qpus, timing)
        self.timed = timing.result()
        return self.timed

    def debug(self, *values: Any, qpus: int = 1, **named: Any) -> Session:
        """Such a call as a session that stands before the first instruction (`vc4lab.debug`).

        What comes out is in the memories named as the arguments: `session.experiment.areas`.
        """
        from vc4lab.debug.programs import ProgramStage
        from vc4lab.debug.session import Session
        from vc4lab.debug.source import Source

        qpus = QPU_COUNT.check(qpus)
        given = self._bound(values, named)
        raw = self.assembly.raw if self.assembly else ()
        experiment = Experiment(self.code, engine="interpreter", reporter=Reporter(), raw=raw)
        call = _Call(self.interface, given, experiment, qpus)
        if self.assembly is None:
            source = Source(Path(self.interface.name), self.code)
        else:
            source = Source.of(self.program.path, self.assembly, text=self.program.text)
        return Session(ProgramStage(experiment, source, qpus, call.streams()))

    def _run(self, values: Sequence[Any], named: dict[str, Any], qpus: int, timing: Any) -> Any:
        qpus = QPU_COUNT.check(qpus)
        given = self._bound(values, named)
        reporter = Reporter()
        experiment = Experiment(
            self.code, engine=self.engine, threads=self.threads, budget=self.budget, reporter=reporter,
            raw=self.assembly.raw if self.assembly else (), check=self.check,
        )  # fmt: skip
        call = _Call(self.interface, given, experiment, qpus)
        if timing is None:
            report = experiment.run(qpus, call.streams())
        else:
            with timing.listen(experiment.programs.listeners):
                report = experiment.run(qpus, call.streams())
        self.report = report
        self._judge(reporter, report)
        results = call.results()
        return None if not results else results[0] if len(results) == 1 else tuple(results)

    def _bound(self, values: Sequence[Any], named: dict[str, Any]) -> dict[str, Any]:
        """Arguments by name. Those that only come out are not passed."""
        wanted = [one.name for one in self.interface.arguments if one.direction != "out"]
        if len(values) > len(wanted):
            raise InterfaceError(f"{self.interface}: {len(values)} arguments are too many")
        given = dict(zip(wanted, values, strict=False))
        for name, value in named.items():
            if name not in wanted or name in given:
                problem = "given twice" if name in given else "no argument that comes in"
                raise InterfaceError(f"{self.interface}: {name} is {problem}")
            given[name] = value
        return given

    def _judge(self, reporter: Reporter, report: Report) -> None:
        errors = [self._placed(item) for item in reporter.items if item.severity >= Severity.ERROR]
        if report.waiting:
            known = "\n".join(errors)
            more = [text for text in report.waiting if text not in known]
            raise KernelError(f"{self.interface.name} does not end: " + "; ".join([*errors, *more]))
        if errors:
            raise KernelError("\n".join(errors))
        for item in reporter.items:
            warnings.warn(self._placed(item), KernelWarning, stacklevel=4)

    def _placed(self, item: Diagnostic) -> str:
        """A message after the place in the source that it is about."""
        index = -1 if item.address is None else (item.address - CODE) // INSTRUCTION_BYTES
        if self.assembly is None or not 0 <= index < len(self.assembly.lines):
            return str(item)
        return f"{self.program.path}:{self.assembly.lines[index][0]}: {item}"


def _text(source: str | os.PathLike[str]) -> str:
    """The source text: what was given, or the file's. Raises OSError."""
    if isinstance(source, str) and "\n" in source:
        return source
    return read_file(Path(source), MAX_SOURCE).decode("utf-8", "replace")


class _Call:
    """One call: arguments with their values, arrays in the memory of an experiment."""

    def __init__(
        self, interface: Interface, given: dict[str, Any], experiment: Experiment, qpus: int
    ) -> None:
        self.interface, self.experiment, self.qpus = interface, experiment, qpus
        self.names: dict[str, Number] = {"qpus": qpus}
        self.lengths: dict[str, int] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        arrays = {
            one.name: _array(one, given)
            for one in interface.arguments
            if one.is_array and one.direction != "out"
        }
        for name, array in arrays.items():
            self.shapes[name] = array.shape
            self.lengths[name] = array.shape[0] if array.shape else 1
        self.places: dict[str, int] = {}
        order = sorted(interface.arguments, key=lambda one: (one.direction == "out", one.is_array))
        for one in order:  # numbers before sizes that may name them
            if one.is_array:
                self._place(one, arrays.get(one.name))
            else:
                self.names[one.name] = self._number(one, given)

    def _place(self, argument: Argument, array: numpy.ndarray | None) -> None:
        import numpy

        kind = numpy.dtype(TYPES[argument.kind])
        if array is None:
            self.shapes[argument.name] = self._shape(argument)
            self.lengths[argument.name] = self.shapes[argument.name][0]
        shape = self.shapes[argument.name]
        size = kind.itemsize
        for length in shape:
            size *= length
            if not 0 < size <= MOST_BYTES:
                raise InterfaceError(
                    f"{argument.name}: an array of shape {shape} has no bytes, or more than "
                    f"{MOST_BYTES >> 20} MiB"
                )
        area = self.experiment.add_area(f"{argument.name}={size}")
        self.names[argument.name] = area.address
        self.places[argument.name] = area.address
        if array is not None:
            self.experiment.memory.array(area.address, array.size, kind)[:] = array.ravel()

    def _shape(self, argument: Argument) -> tuple[int, ...]:
        """The shape of an array that only comes out."""
        if len(argument.sizes) == 1 and argument.sizes[0] in self.shapes:
            return self.shapes[argument.sizes[0]]
        sizes = [self._value(text) for text in argument.sizes]
        for size in sizes:
            if not isinstance(size, int):
                raise InterfaceError(f"{argument}: {size} is no size")
        return tuple(int(size) for size in sizes)

    def _number(self, argument: Argument, given: dict[str, Any]) -> Number:
        if argument.name in given:
            value = given[argument.name]
            try:
                value = float(value) if argument.kind == "float" else value.__index__()
            except (TypeError, ValueError, AttributeError):
                raise InterfaceError(
                    f"{argument.name}: {type(value).__name__} is no {argument.kind}"
                ) from None
        elif argument.default is None:
            raise InterfaceError(f"{self.interface}: {argument.name} is missing")
        else:
            value = self._value(argument.default)
        number: Number = float(value) if argument.kind == "float" else value
        word_of(number, argument.name)
        return number

    def _value(self, text: str, qpu: int = 0) -> Number:
        names = {**self.names, "qpu": qpu, "uniforms": uniforms_address(qpu)}
        return value_of(text, names, self.lengths)

    def streams(self) -> list[str]:
        """The uniforms of each QPU, as `Experiment.run` takes them."""
        return [
            ", ".join(self._uniform(text, qpu) for text in self.interface.uniforms)
            for qpu in range(self.qpus)
        ]

    def _uniform(self, text: str, qpu: int) -> str:
        word = word_of(self._value(text, qpu), f"uniform {text}")
        return f"0x{word:x}"

    def results(self) -> list[numpy.ndarray]:
        """Copies of the arrays that come out."""
        import numpy

        found = []
        for one in self.interface.arguments:
            if one.is_array and one.direction != "in":
                shape, kind = self.shapes[one.name], numpy.dtype(TYPES[one.kind])
                count = int(numpy.prod(shape, dtype=numpy.int64))
                stored = self.experiment.memory.array(self.places[one.name], count, kind)
                found.append(stored.copy().reshape(shape))
        return found


def _array(argument: Argument, given: dict[str, Any]) -> numpy.ndarray:
    """Return an argument as an array of its declared type. Raises InterfaceError."""
    import numpy

    if argument.name not in given:
        raise InterfaceError(f"{argument.name} is missing: an array of {argument.kind}")
    kind = numpy.dtype(TYPES[argument.kind])
    try:
        array = numpy.asarray(given[argument.name])
    except (ValueError, TypeError) as error:
        raise InterfaceError(f"{argument.name}: {error}") from None
    whole = array.dtype.kind in "iub" and kind.kind in "iuf"
    if not numpy.can_cast(array.dtype, kind, "same_kind") and not whole:
        raise InterfaceError(f"{argument.name}: an array of {array.dtype}; the kernel takes {argument.kind}")
    if whole and kind.kind in "iu" and array.size:
        limits = numpy.iinfo(kind)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise InterfaceError(f"{argument.name}: a number does not fit {argument.kind}")
    return numpy.ascontiguousarray(array, kind)
