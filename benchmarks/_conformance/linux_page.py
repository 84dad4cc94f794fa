"""What piglit does in a booted Debian beside the virtual device, as a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks._conformance.chip import Causes
from benchmarks._conformance.compare import group_of
from benchmarks._conformance.page import COLUMNS

HEAD = """# piglit in Debian's Linux on the simulated Pi

A fixed sample of 200 tests of piglit's quick_shader (of those that the boards of
[conformance.md](conformance.md) run, up to GLSL 1.20, every n-th by name), each in a process of its
own, twice: on vc4.ko in the booted guest of `vc4lab linux`, and on the virtual device of
`vc4lab drm`. Programs, Mesa and tests are the same arm64 packages. Compared are piglit's result
and the bytes of every frame that the V3D has stored. Written by `make conformance-linux`, only
when every test has both results; *why* comes from `causes-linux.toml`.
"""
RESULT, BYTES = "result differs", "bytes differ"
Pairs = Mapping[str, tuple["Outcome", "Outcome"]]


@dataclass(frozen=True)
class Outcome:
    """What became of a test on one side: piglit's result, the V3D's jobs, their bytes' digest."""

    result: str
    jobs: int
    digest: str

    def __str__(self) -> str:
        return f"{self.result} {self.jobs} {self.digest}"

    @classmethod
    def of(cls, text: str) -> Outcome:
        """The inverse of str."""
        result, jobs, digest = text.split(" ")
        return cls(result, int(jobs), digest)


def differences(pairs: Pairs) -> dict[str, str]:
    """Tests that differ, and in what."""
    found = {}
    for name, (guest, device) in pairs.items():
        if guest.result != device.result:
            found[name] = RESULT
        elif guest != device:
            found[name] = BYTES
    return found


def page(pairs: Pairs, causes: Causes, suite: str, host: str) -> str:
    """The whole page. `pairs`: by name, the outcome in the guest and on the device."""
    return "\n".join(_lines(pairs, causes, suite, host)) + "\n"


def _lines(pairs: Pairs, causes: Causes, suite: str, host: str) -> Iterator[str]:
    found = differences(pairs)
    of = Counter(found.values())
    jobs = sum(guest.jobs for guest, _device in pairs.values())
    yield HEAD
    yield f"Packages: Debian {suite}, arm64. Host: {host}."
    yield ""
    yield "| tests | same result | result differs | same bytes | bytes differ | jobs in the guest |"
    yield "| --- | --- | --- | --- | --- | --- |"
    same = len(pairs) - of[RESULT]
    yield f"| {len(pairs)} | {same} | {of[RESULT]} | {same - of[BYTES]} | {of[BYTES]} | {jobs} |"
    yield "\n## Differences\n"
    for name, kind in found.items():
        guest, device = pairs[name]
        what = f"guest {guest.result}, {guest.jobs} jobs; device {device.result}, {device.jobs}"
        yield f"* `{name}`: {kind} ({what}): {causes.of(name, kind)}"
    if not found:
        yield "None."
    yield "\n## Counts by group, in the guest\n"
    yield "| group | " + " | ".join(COLUMNS) + " |"
    yield "| --- |" + " --- |" * len(COLUMNS)
    groups: dict[str, Counter[str]] = {}
    for name, (guest, _device) in pairs.items():
        groups.setdefault(group_of(name), Counter())[guest.result] += 1
    for group, count in sorted(groups.items()):
        yield f"| {group} | " + " | ".join(str(count[name] or "") for name in COLUMNS) + " |"
