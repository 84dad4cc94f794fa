"""Tables that show themselves: as text, and as HTML in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import Any, TypeVar, overload

MOST_ROWS = 200
"""Rows that are shown; a table has all of them."""
Item = TypeVar("Item")


class Table(Sequence[Item]):
    """A sequence of things, each a row.

    Parameters
    ----------
    items
        The things.
    head
        Names of the columns.
    cells
        Gives the cells of a thing: text, numbers; bytes of a PNG file are a picture.
    title
        A sentence above it, or "".
    """

    def __init__(
        self,
        items: Iterable[Item],
        head: Sequence[str],
        cells: Callable[[Item], Sequence[Any]],
        title: str = "",
    ) -> None:
        self.items, self.head, self.title = list(items), tuple(head), title
        self._cells = cells

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> Table[Item]: ...
    def __getitem__(self, place: int | slice) -> Item | Table[Item]:
        if isinstance(place, slice):
            return Table(self.items[place], self.head, self._cells, self.title)
        return self.items[place]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __eq__(self, other: object) -> bool:
        return list(other) == self.items if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def rows(self) -> list[tuple[Any, ...]]:
        """The cells of all rows."""
        return [tuple(self._cells(one)) for one in self.items]

    def __repr__(self) -> str:
        shown = [self.head, *(tuple(map(_text, self._cells(one))) for one in self.items[:MOST_ROWS])]
        widths = [max(len(row[column]) for row in shown) for column in range(len(self.head))]
        lines = [self.title] * bool(self.title)
        lines += [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in shown
        ]
        return "\n".join([*lines, *self._rest()])

    def _rest(self) -> list[str]:
        left = len(self.items) - MOST_ROWS
        return [f"… {left} more rows"] if left > 0 else []

    def _repr_html_(self) -> str:
        """The table, in a notebook."""
        parts = [f"<p>{escape(self.title)}</p>"] * bool(self.title)
        parts.append("<table><thead><tr>")
        parts += [f"<th>{escape(name)}</th>" for name in self.head]
        parts.append("</tr></thead><tbody>")
        for one in self.items[:MOST_ROWS]:
            parts.append("<tr>" + "".join(map(_cell, self._cells(one))) + "</tr>")
        parts.append("</tbody></table>")
        return "".join([*parts, *(f"<p>{line}</p>" for line in self._rest())])


class Colour(str):
    """A cell with a colour, `#rrggbb…`, which HTML shows as such."""


def _text(cell: Any) -> str:
    if isinstance(cell, bytes):
        return "(picture)"
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _cell(cell: Any) -> str:
    """A cell of HTML."""
    if isinstance(cell, bytes):
        from base64 import b64encode

        return f'<td><img src="data:image/png;base64,{b64encode(cell).decode()}"></td>'
    text = escape(_text(cell)).replace("\n", "<br>")
    if isinstance(cell, Colour) and cell.startswith("#") and cell[1:7].isalnum():
        sample = f"display:inline-block;width:1em;height:1em;background:{cell[:7]}"
        return f'<td><span style="{sample}"></span> <code>{text}</code></td>'
    return f"<td>{text}</td>"
