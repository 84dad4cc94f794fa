"""Firmware of other years: which rows of the unknowns table it decides otherwise than today's."""

from __future__ import annotations

from collections.abc import Mapping

from vc4lab.diagnostics.unknown import find
from vc4lab.soc.unknowns import Unknowns

TODAY = "today"
FIRMWARES: Mapping[str, Mapping[str, str]] = {
    TODAY: {},
    "2015": {
        "hyp_start": "svc",
        "monitor_call": "undefined",  # it belongs to the stub, which there is none of
        "framebuffer_address": "physical",
    },
}
"""Choices by the year of the firmware."""


def choices_of(firmware: str) -> Mapping[str, str]:
    """What a firmware decides. Raises ValueError for one that is not in the table."""
    found = FIRMWARES.get(firmware)
    if found is None:
        raise ValueError(f"firmware {firmware!r}: {' and '.join(FIRMWARES)} exist")
    return found


def with_firmware(unknowns: Unknowns, firmware: str) -> Unknowns:
    """`unknowns`, and where they have the default, what the firmware decides. Raises ValueError."""
    chosen = choices_of(firmware).items()
    return unknowns.with_(**{n: c for n, c in chosen if unknowns[n] == find(n).default})
