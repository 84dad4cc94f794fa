"""Builds the tree that an editor shows of a QPU: scopes, registers, their lanes, all other state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from vc4lab.debug.formats import brief, word_text
from vc4lab.debug.state import REGISTERS
from vc4lab.v3d.vpm.shader_rows import WINDOW_ROWS

if TYPE_CHECKING:
    from vc4lab.debug.session import Session
    from vc4lab.debug.stage import Section

MOST_REFERENCES = 100_000
MOST_WORDS = 1024
"""Words of a named memory that are shown."""
_GROUPS = (("Accumulators", "r"), ("Register file A", "a"), ("Register file B", "b"))


class Node(NamedTuple):
    """A variable. evaluate: an expression for it; children: makes those below it."""

    name: str
    value: str
    evaluate: str = ""
    children: Callable[[], list[Node]] | None = None
    indexed: int = 0
    memory: int | None = None


class Variables:
    """The tree of a stop; references are numbers that hold up to the next one."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._references: dict[int, tuple[int, Callable[[], list[Node]]]] = {}

    def clear(self) -> None:
        """The session went on."""
        self._references.clear()

    def _reference(self, qpu: int, children: Callable[[], list[Node]] | None) -> int:
        if children is None or len(self._references) >= MOST_REFERENCES:
            return 0
        number = len(self._references) + 1
        self._references[number] = qpu, children
        return number

    def qpu_of(self, reference: int) -> int:
        """Whose variables these are. Raises KeyError."""
        return self._references[reference][0]

    def nodes(self, reference: int) -> list[Node]:
        """Return the nodes below a reference. Raises KeyError."""
        return self._references[reference][1]()

    def scopes(self, qpu: int) -> list[dict[str, Any]]:
        """The scopes of a QPU's frame."""
        makers: list[tuple[str, Callable[[], list[Node]]]] = [
            (title, partial(self._registers, qpu, file)) for title, file in _GROUPS
        ]
        makers += [
            ("Flags", lambda: self._flags(qpu)),
            ("Uniforms", lambda: self._uniforms(qpu)),
            ("TMU", lambda: self._tmus(qpu)),
        ]
        sections = self.session.stage.sections
        if sections:
            makers += [(one.title.capitalize(), partial(self._section, one)) for one in sections]
        else:
            makers += [
                ("VPM", lambda: self._vpm(qpu)),
                ("Synchronisation", lambda: self._shared(qpu)),
                ("Memory", self._memory),
            ]
        return [
            {
                "name": title,
                "variablesReference": self._reference(qpu, maker),
                "expensive": title in ("VPM", "Memory"),
                **({"presentationHint": "registers"} if title == "Accumulators" else {}),
            }
            for title, maker in makers
        ]

    def shown(self, qpu: int, node: Node) -> dict[str, Any]:
        """A variable as the protocol has it."""
        found: dict[str, Any] = {
            "name": node.name,
            "value": node.value,
            "variablesReference": self._reference(qpu, node.children),
        }
        if node.evaluate:
            found["evaluateName"] = node.evaluate
        if node.indexed:
            found["indexedVariables"] = node.indexed
        if node.memory is not None:
            found["memoryReference"] = f"0x{node.memory:08x}"
        return found

    def lanes_of(
        self, name: str, words: Sequence[int], form: str = "int", evaluate: str | None = None
    ) -> Node:
        """A register or a row: its lanes below it, each in all views. evaluate: None, as the name."""
        known = name if evaluate is None else evaluate
        values = [int(word) & 0xFFFFFFFF for word in words]

        def children() -> list[Node]:
            return [
                Node(
                    f"[{lane}]", _all_views(word), f"{known}[{lane}]" if known else "", partial(_views, word)
                )
                for lane, word in enumerate(values)
            ]

        return Node(name, brief(values, form), known, children, len(values))

    def _registers(self, qpu: int, file: str) -> list[Node]:
        view = self.session.view(qpu)
        nodes = [self.lanes_of(name, view.register(key)) for name, key in REGISTERS if key[0] == file]
        if file == "r":
            nodes += [
                Node(
                    f"{late.register} after {late.instructions}",
                    brief(late.words, "int"),
                    "",
                    self.lanes_of("", late.words).children,
                )
                for late in view.pending()
            ]
        return nodes

    def _flags(self, qpu: int) -> list[Node]:
        view = self.session.view(qpu)
        nodes = []
        for name in "znc":
            lanes = [int(on) for on in view.flag(name)]
            children = [Node(f"[{n}]", str(on), f"{name}[{n}]") for n, on in enumerate(lanes)]
            text = "".join("1" if on else "." for on in lanes)
            nodes.append(Node(name, text, name, partial(list, children), 16))
        return nodes

    def _section(self, section: Section) -> list[Node]:
        """A part of the state that only this kind of program has."""
        nodes = []
        for row in section.rows():
            known = row.name if self.session.stage.lanes(row.name) is not None else ""
            if len(row.words) > 1:
                node = self.lanes_of(row.name.strip(), row.words, row.form, known)
                nodes.append(node._replace(value=f"{node.value}  {row.note}".rstrip()))
            else:
                nodes.append(Node(row.name.strip(), f"{brief(row.words, row.form)} {row.note}".strip()))
        return nodes

    def _uniforms(self, qpu: int) -> list[Node]:
        meaning = self.session.stage.meaning
        return [
            Node(
                f"0x{address:08x}",
                f"{_all_views(word)}  {meaning(address)}".rstrip(),
                "",
                partial(_views, word),
                memory=address,
            )
            for address, word in self.session.view(qpu).uniforms(16)
        ]

    def _tmus(self, qpu: int) -> list[Node]:
        nodes = []
        for number in (0, 1):
            tmu = self.session.view(qpu).tmu(number)
            children = [self.lanes_of(f"result {n}", words) for n, words in enumerate(tmu.results)]
            children += [Node(f"parameter {n}", f"0x{word:08x}") for n, word in enumerate(tmu.parameters)]
            children += [self.lanes_of(name, words, "float") for name, words in tmu.coordinates.items()]
            text = f"{len(tmu.results)} results, room for {tmu.room} requests"
            nodes.append(Node(f"TMU{number}", text, "", partial(list, children)))
        return nodes

    def _vpm(self, qpu: int) -> list[Node]:
        table = self.session.stage.vpm_rows()
        rows = [self.lanes_of(f"vpm[{row}]", table[row].tolist()) for row in range(WINDOW_ROWS)]
        setups = self.session.view(qpu).setups()
        return [*(Node(name, f"0x{word:08x}") for name, word in setups.items()), *rows]

    def _shared(self, qpu: int) -> list[Node]:
        shared = self.session.stage.shared
        assert shared is not None
        holder = int(shared.mutex) - 1
        nodes = [Node("mutex", "free" if holder < 0 else f"held by QPU {holder}")]
        nodes += [Node(f"sem[{n}]", str(value), f"sem[{n}]") for n, value in enumerate(shared.semaphores)]
        view = self.session.view(qpu)
        nodes.append(Node("state", view.waits or view.state))
        return nodes

    def _memory(self) -> list[Node]:
        nodes = []
        for area in self.session.areas.values():
            count = min(area.size // 4, MOST_WORDS)
            nodes.append(
                Node(
                    area.name,
                    f"{area.size} bytes at 0x{area.address:08x}",
                    area.name,
                    partial(self._words, area.name, area.address, count),
                    count,
                    area.address,
                )
            )
        return nodes

    def _words(self, name: str, start: int, count: int) -> list[Node]:
        return [
            Node(
                f"[{n}]",
                _all_views(word),
                f"mem[{name} + {4 * n}]",
                partial(_views, word),
                memory=start + 4 * n,
            )
            for n in range(count)
            for word in (self.session.memory.u32(start + 4 * n),)
        ]


def _all_views(word: int) -> str:
    return f"{word_text(word, 'int')}  0x{word:08x}  {word_text(word, 'float')}"


def _views(word: int) -> list[Node]:
    """A word in each view."""
    return [Node(form, word_text(word, form)) for form in ("hex", "int", "uint", "float", "half", "bytes")]
