"""What all clients of a server share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vc4lab.mesa.events import MesaListeners

if TYPE_CHECKING:
    from vc4lab.diagnostics import Reporter
    from vc4lab.mesa.store.screen import Screen


@dataclass(frozen=True)
class Shared:
    """The GPU, where messages go, and what the server says of itself.

    Attributes
    ----------
    protocol
        The highest version that it speaks: 0 or 2.
    capabilities
        As Mesa reads them.
    listeners
        For what may be observed (`mesa/events.py`).
    """

    screen: Screen
    reporter: Reporter
    protocol: int
    capabilities: bytes
    listeners: MesaListeners = field(default_factory=MesaListeners)
