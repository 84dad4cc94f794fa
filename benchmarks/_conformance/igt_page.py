"""What igt-gpu-tools say of the virtual device beside vc4.ko: its part of the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from benchmarks._conformance.chip import Causes
from benchmarks._conformance.page import FOLD

IGT_MARK = "# The kernel's own tests: the virtual device beside vc4.ko"
HEAD = f"""{IGT_MARK}

igt-gpu-tools 2.2, built outside this repository: each sub-test of the core, DRM, KMS, sync object
and vc4 programs, the amd64 build on the virtual device of `vc4lab drm`, the arm64 build in the
guest of `vc4lab linux` on Debian's own vc4.ko. Written by `make conformance-igt IGT=DIR`, only when
every program has both results; *why* comes from `causes-igt.toml`. A sub-test that a program did
not come to within its time, or did not end, is run alone; one that fails on the virtual device too,
three times at most, since tests that measure time fail on a host that is busy.
"""
Pairs = Mapping[str, tuple[str, str]]
"""By program and sub-test: the result on the device, the result in the guest."""


def differences(pairs: Pairs, causes: Causes) -> list[tuple[str, str, str]]:
    """Sub-tests that end otherwise: name, both results, and why."""
    found = []
    for name, (device, guest) in pairs.items():
        if device != guest:
            kind = f"{device} {guest}"
            found.append((name, kind, causes.of(name, kind)))
    return found


def part(
    pairs: Pairs,
    causes: Causes,
    release: str,
    host: str,
    left_out: Sequence[str] = (),
    again: Sequence[str] = (),
    note: str = "",
) -> str:
    """The whole part. `left_out`: programs that were not run; `again`: sub-tests that passed on the
    virtual device after they had failed; `note`: how these runs were made."""
    return "\n".join(_lines(pairs, causes, f"{release}. Host: {host}", left_out, again, note)) + "\n"


def _lines(
    pairs: Pairs, causes: Causes, where: str, left_out: Sequence[str], again: Sequence[str], note: str
) -> Iterator[str]:
    found = differences(pairs, causes)
    yield HEAD
    yield f"Guest: Linux {where}." + (f" {note}" if note else "")
    if again:
        names = ", ".join(f"`{name}`" for name in again)
        yield f"\nPassed here, alone, after having failed: {names}."
    if left_out:
        yield f"\nNot run this time: {', '.join(left_out)}."
    yield ""
    yield "| program | sub-tests | same | differ | pass | fail | skip |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    total: Counter[str] = Counter()
    rows: dict[str, Counter[str]] = {}
    for name, (device, guest) in pairs.items():
        count = rows.setdefault(name.split(" ")[0], Counter())
        for one in (count, total):
            one["all"] += 1
            one["same" if device == guest else "differ"] += 1
            one[device] += 1
    for program, count in (*sorted(rows.items()), ("all", total)):
        fields = ("all", "same", "differ", "SUCCESS", "FAIL", "SKIP")
        yield f"| {program} | " + " | ".join(str(count[field] or "") for field in fields) + " |"
    yield "\n## Differences from vc4.ko\n"
    by_cause: dict[tuple[str, str], list[str]] = {}
    for name, kind, cause in found:
        by_cause.setdefault((kind, cause), []).append(name)
    for (kind, cause), names in by_cause.items():
        device, guest = kind.split(" ")
        what = f"{device} here, {guest} in the guest: {cause}"
        if len(names) <= FOLD:
            yield f"* {', '.join(f'`{name}`' for name in names)}: {what}"
            continue
        yield f"* {len(names)} sub-tests: {what}"
        yield "  <details><summary>names</summary>\n"
        yield from (f"  `{name}`  " for name in names)
        yield "  </details>"
    if not found:
        yield "None."
