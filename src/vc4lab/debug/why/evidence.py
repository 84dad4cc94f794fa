"""Collects what a frame showed when it was run again: draws, the records that decide, vertices' places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from vc4lab.debug.why.corners import Corners, corners_of
from vc4lab.debug.why.rerun import Lists, Rerun, run_again
from vc4lab.debug.why.stages import Group, groups_of
from vc4lab.records.control import RECORD_SIZES, parse_record

if TYPE_CHECKING:
    from vc4lab.records.payload import Payload
    from vc4lab.v3d.core import V3D

P = TypeVar("P", bound="Payload")
_WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class Cause:
    """Why nothing is to be seen: a code of the catalogue, a sentence, what decides it, counts."""

    code: str
    text: str
    address: int | None = None
    detail: str | None = None


class Evidence:
    """A frame of a V3D, run again.

    Attributes
    ----------
    found
        What the second run recorded.
    groups
        Its draws by render state.
    """

    def __init__(self, v3d: V3D, lists: Lists, found: Rerun) -> None:
        self.v3d, self.lists, self.found = v3d, lists, found
        self.memory = v3d.memory
        self.groups = groups_of(found)

    def before(self, kind: type[P], group: Group | None, thread: int = 0) -> tuple[int, P] | None:
        """The last record of a kind before a group's first draw (before the end, without one)."""
        if group is not None and not group.binned:  # the rendering list has its primitives
            thread = 1
        records = self.found.records[thread]
        end = len(records)
        if group is not None and group.binned and thread == 0:
            draw = int(group.binned[0]["record"]) & _WORD
            end = next((at for at, (place, _) in enumerate(records) if place == draw), end)
        for place, number in reversed(records[:end]):
            if number == kind.id:
                payload = parse_record(self.memory.read, place).payload
                return (place, payload) if isinstance(payload, kind) else None
        return None

    def executed(self, *kinds: type[Payload], thread: int) -> list[int]:
        """Addresses of the records of some kinds that a list thread executed."""
        ids = {kind.id for kind in kinds}
        return [place for place, number in self.found.records[thread] if number in ids]

    def corners(self, group: Group) -> Corners | None:
        """The vertices of a group's first draw."""
        if not group.binned:
            return None
        row = group.binned[0]
        last = self.found.binned[-1].draws[-len(row.tobytes()) :]
        if row.tobytes() == last:
            return corners_of(self.found.v3d, row)
        return self._corners_alone(row)

    def _corners_alone(self, row: Any) -> Corners | None:
        """Bins up to a draw, whose vertices are then those that the binner has."""
        if self.lists.binning is None:
            return None
        start, end = self.lists.binning
        draw = int(row["record"]) & _WORD
        after = draw + RECORD_SIZES[int(row["op"])]
        if not start <= draw < after <= end:
            return None
        alone = run_again(self.v3d, Lists((start, after), None))
        return None if alone is None else corners_of(alone.v3d, row)
