"""A capture as text: of each draw its command, its state, and the data that it uses.

QPU programs and control lists exist when a frame is drawn; so the frames are drawn meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vc4lab.driver.capture.model import STAGES, Capture, CapturedFrame
from vc4lab.driver.capture.player import Player
from vc4lab.driver.capture.state_text import part_lines
from vc4lab.driver.capture.store import part_file, resource_file
from vc4lab.driver.capture.tables import DrawTables, Table, constants_rows, header, rows_text
from vc4lab.driver.commands import commands as c
from vc4lab.driver.commands.commands import command_text, payload_words, ref_text
from vc4lab.qpu.text.disassembler import disassemble

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.driver.compiler.interface import CompiledShader
    from vc4lab.driver.queue.events import DrawAdded, JobDrawn

ListLines = Callable[[Any, Any], Iterable[str]]
"""GPU memory and the lists of a job: their lines."""
INDENT = "  "
CODE_WIDTH = 46


@dataclass(frozen=True)
class Choice:
    """Chooses what is shown.

    Attributes
    ----------
    frame, draw
        Only this frame; only this draw of each frame, from 1 on.
    rows
        Rows of a table that are shown.
    """

    frame: int | None = None
    draw: int | None = None
    rows: int = 8


class Show:
    """The text of a capture.

    lists: control lists of jobs as lines; None: they are not shown.
    """

    def __init__(
        self,
        capture: Capture,
        choice: Choice | None = None,
        reporter: Reporter | None = None,
        lists: ListLines | None = None,
    ) -> None:
        self.capture = capture
        self.choice = choice or Choice()
        self._lists = lists
        self._player = Player(capture, reporter=reporter)
        self._tables = DrawTables(capture)
        self._pipelines: dict[int, Any] = {}
        self._jobs: list[tuple[tuple[int, ...], list[str]]] = []

    def lines(self) -> Iterator[str]:
        """Everything, line by line. Raises CaptureError, StrictStop."""
        listeners = self._player.screen.listeners
        with listeners.draw.subscribe(self._added), listeners.job.subscribe(self._drawn):
            for frame, _ in self._player.play():
                if self.choice.frame in (None, frame.number):
                    yield from self._frame(frame)
                self._pipelines.clear()
                self._jobs.clear()

    def _added(self, event: DrawAdded) -> None:
        self._pipelines[event.number] = event.pipeline

    def _drawn(self, event: JobDrawn) -> None:
        if self._lists is not None and self.choice.frame in (None, event.frame):
            if self.choice.draw is None or self.choice.draw in event.draws:
                memory = self._player.screen.memory.guest
                self._jobs.append((event.draws, list(self._lists(memory, event.lists))))

    # -- a frame -----------------------------------------------------------------------------------

    def _frame(self, frame: CapturedFrame) -> Iterator[str]:
        yield f"frame {frame.number}: {len(frame.commands)} commands, {len(frame.draws)} draws"
        number = 0
        for place, command in enumerate(frame.commands):
            if not isinstance(command, c.Draw):
                if self.choice.draw is None:
                    yield f"{INDENT}{command_text(command, names=True)}"
                continue
            number += 1
            if self.choice.draw in (None, number):
                yield from _indented(self._draw(frame, place, number, command))
        for draws, lines in self._jobs:
            which = f"draws {draws[0]}-{draws[-1]}" if draws else "no draws"
            yield f"{INDENT}control lists of {which}"
            yield from _indented(_indented(lines))

    def _draw(self, frame: CapturedFrame, place: int, number: int, draw: c.Draw) -> Iterator[str]:
        yield f"draw {number}"
        yield f"{INDENT}commands"
        yield f"{INDENT * 2}{command_text(draw, names=True)}"
        yield f"{INDENT}drawing"
        yield from _indented(_indented(self._drawing(draw)))
        yield f"{INDENT}data"
        tables = self._tables.of_draws.get((frame.number, place), [])
        yield from _indented(_indented(self._data(draw, number, tables)))

    def _drawing(self, draw: c.Draw) -> Iterator[str]:
        """draw_info, pipe_state, shader_state."""
        words = [word for word in payload_words(draw) if not word.startswith(_STATES)]
        yield f"draw_info: {' '.join(words)}"
        named = self.capture.parts["pipe_state"][draw.pipe_state]
        yield ref_text("pipe_state", draw.pipe_state)
        for kind, number in named.items():
            yield f"{INDENT}{ref_text(kind, number)}"
            yield from _indented(_indented(part_lines(kind, self.capture.part(kind, number))))
        yield ref_text("shader_state", draw.shader_state)
        stages = self.capture.parts["shader_state"][draw.shader_state]
        yield from _indented(part_lines("shader_state", stages))
        for stage in STAGES:
            for kind in ("views", "samplers"):
                number = stages[stage].get(kind, 0)
                if number:
                    yield f"{INDENT}{stage}: {ref_text(kind, number)}"
                    value = self.capture.part(kind, number)
                    yield from _indented(_indented(part_lines(kind, value)))

    # -- data --------------------------------------------------------------------------------------

    def _data(self, draw: c.Draw, number: int, tables: Any) -> Iterator[str]:
        for key in tables:
            yield from self._table(self._tables.tables[key])
        state = self.capture.state_of(draw)
        pipeline = self._pipelines.get(number)
        for stage in STAGES:
            held = getattr(state, stage)
            for view in held.views:
                if view is not None:
                    resource = view.resource
                    yield f"{stage} texture: {resource}, {resource_file(resource.number)}"
            for place, values in enumerate(held.constants):
                if values:
                    yield f"{stage} constants {place}: {len(values) // 16} registers"
                    rows = constants_rows(values)
                    yield from _indented(", ".join(row) for row in rows[: self.choice.rows])
                    if len(rows) > self.choice.rows:
                        yield f"{INDENT}… {len(rows)} in all"
            if held.shader is not None:
                shader = self.capture.parts["shader_state"][draw.shader_state][stage]["shader"]
                yield from self._shader(stage, shader, held.shader.text, pipeline)

    def _table(self, table: Table) -> Iterator[str]:
        shape = table.shape
        kind = "indices" if shape.columns[0].name == "index" else "vertices"
        yield (
            f"{kind}: {ref_text('resource', shape.resource)} from byte {shape.start}, "
            f"{shape.stride} bytes a row, rows {table.first} to {table.last}"
        )
        last = min(table.last, table.first + self.choice.rows - 1)
        yield INDENT + header(shape)
        yield from _indented(rows_text(shape, table.first, last, table.content))
        if last < table.last:
            yield f"{INDENT}… {table.last - table.first + 1} in all"

    def _shader(self, stage: str, number: int, text: str, pipeline: Any) -> Iterator[str]:
        """TGSI, with the QPU code beside the lines that it comes from."""
        yield f"{stage} shader: {part_file('shader', number)}"
        yield from _indented(text.rstrip("\n").split("\n"))
        if pipeline is None:
            yield f"{INDENT}nothing is drawn, so that there is no program"
            return
        if stage == "fragment":
            yield from self._program(pipeline.fragment.shader, text)
        else:
            yield from self._program(pipeline.vertex.compiled.vertex, text)
            yield from self._program(pipeline.vertex.compiled.coordinate, text)

    def _program(self, program: CompiledShader, text: str) -> Iterator[str]:
        source = text.split("\n")
        yield f"{program.stage.value} program: {len(program.words)} instructions"
        for place, word in enumerate(program.words):
            code = disassemble(word, 8 * place)
            lines = program.lines[place] if place < len(program.lines) else ()
            beside = " | ".join(source[one - 1].strip() for one in lines if one <= len(source))
            yield f"{INDENT}{code:{CODE_WIDTH}s}  {beside}".rstrip()
        for place, uniform in enumerate(program.uniforms):
            yield f"{INDENT}uniform {place}: {uniform}"


_STATES = ("pipe_state=", "shader_state=")


def _indented(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield INDENT + line
