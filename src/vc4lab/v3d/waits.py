"""Says what a program that polls a V3D register waits for.

Nothing here changes state; the board's watchdog calls it when a program makes no progress.
Source: hardware reference 2.4-2.7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vc4lab.v3d.registers import BY_OFFSET, Interrupts, RequestQueue

if TYPE_CHECKING:
    from vc4lab.v3d.cle.thread import ListThread
    from vc4lab.v3d.core import V3D

_FRDONE, _FLDONE = Interrupts.FRDONE.mask, Interrupts.FLDONE.mask


def describe_wait(v3d: V3D, offset: int, value: int) -> str | None:
    """Why the register at `offset`, read as `value`, stays as it is; None if nothing is known."""
    register = BY_OFFSET.get(offset)
    if register is None:
        return None
    parts = []
    if register.layout is not None and value:
        fields = register.layout.layout_fields
        set_ones = [f"{n}={v}: {fields[n].doc}" for n, v in register.layout(value).items() if v]
        parts.append(", ".join(set_ones))
    teller = _TELLERS.get(register.name)
    if teller is not None:
        parts.append(teller(v3d))
    return "; ".join(parts) or None


def _count(v3d: V3D, thread: ListThread, register: str, counted: str, missing: str) -> str:
    text = f"{register} counts {counted}, and {thread.in_words}"
    if thread.started and not thread.running and not thread.closed:
        return f"{text}, without {missing}"
    if v3d.values[register] and not thread.running:
        return f"{text}: it has counted to {v3d.values[register]} (writing 1 clears it)"
    return text


def _flushes(v3d: V3D) -> str:
    counted = "Flush records (4, 5) of binning lists"
    return _count(v3d, v3d.threads[0], "BFC", counted, "a Flush")


def _frames(v3d: V3D) -> str:
    return _count(v3d, v3d.threads[1], "RFC", "ends of frame (record 25)", "an end of frame")


def _threads(v3d: V3D) -> str:
    return "; ".join(thread.in_words for thread in v3d.threads)


def _pipelines(v3d: V3D) -> str:
    text = "PCS shows states; none of its bits except BMOOM is an error"
    return f"{text}; {_threads(v3d)}"


def _interrupts(v3d: V3D) -> str:
    enabled = v3d.values["INTENA"]
    missing = [
        text
        for bit, text in ((_FRDONE, _frames(v3d)), (_FLDONE, _flushes(v3d)))
        if not v3d.values["INTCTL"] & bit
    ]
    text = "; ".join(missing) or _threads(v3d)
    return text if enabled else f"{text}; no interrupt of the V3D is enabled (INTENA = 0)"


def _programs(v3d: V3D) -> str:
    status = RequestQueue(v3d.programs.status())
    return f"{int(status.QPURQCM)} user programs were requested (SRQPC), {int(status.QPURQCC)} have completed"


_TELLERS = {
    "BFC": _flushes,
    "RFC": _frames,
    "PCS": _pipelines,
    "CT0CS": _threads,
    "CT1CS": _threads,
    "CT0CA": _threads,
    "CT1CA": _threads,
    "CT0LC": _threads,
    "CT1LC": _threads,
    "INTCTL": _interrupts,
    "SRQCS": _programs,
    "BPOS": _threads,
}
