"""The state of a V3D where a capture begins in the middle of a run, as JSON and back.

What a list sets is set again by the list that follows; the state that the binner keeps from one list
to the next is kept as the records that set it, and executed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.capture.errors import CaptureError
from vc4lab.v3d.ptb import context as pc
from vc4lab.v3d.state.native_records import RECORD_SLOT
from vc4lab.v3d.state.power_on import parts_of
from vc4lab.v3d.state.saved_values import BadValue, Row

if TYPE_CHECKING:
    from vc4lab.v3d.core import V3D

RECORDS = "binner"


def _rows(v3d: V3D) -> list[Row]:
    return [Row(name or "v3d", part, attributes) for name, part, attributes in parts_of(v3d)]


def start_of(v3d: V3D) -> dict[str, Any]:
    """The state of a V3D that is at rest."""
    found: dict[str, Any] = {row.name: row.snapshot() for row in _rows(v3d)}
    context = v3d.binning.binner.context
    records = bytes(context.records)
    found[RECORDS] = [
        records[RECORD_SLOT * kind :][: context.record_bytes[kind]].hex()
        for kind in range(len(pc.STATE_KINDS))
        if context.changed[kind] != pc.NEVER_SET
    ]
    return found


def begin_with(v3d: V3D, state: dict[str, Any], file: str) -> None:
    """Bring a new V3D into such a state. Raises CaptureError for what is none."""
    rows = _rows(v3d)
    try:
        checked = [(row, row.check(state.get(row.name))) for row in rows]
        records = [bytes.fromhex(one) for one in state.get(RECORDS, ())]
    except (BadValue, TypeError, ValueError) as error:
        raise CaptureError("CAP-004", f"start: {error}", file) from None
    for row, values in checked:
        row.restore(values)
    known = {number for kinds in pc.STATE_KINDS for number in kinds}
    for record in records[: len(pc.STATE_KINDS)]:
        if not record or record[0] not in known or len(record) > RECORD_SLOT:
            raise CaptureError("CAP-004", f"start: {record.hex()[:40]!r} is no record of state", file)
        v3d.binning.binner.set_state(record.ljust(RECORD_SLOT, b"\0"))
