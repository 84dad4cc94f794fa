"""Findings about jobs: named by job and place, each only once for a program."""

from collections import Counter

import pytest

from vc4lab.diagnostics import Reporter
from vc4lab.diagnostics.catalogue import catalogue
from vc4lab.drm.kernel.hardware import JobReports
from vc4lab.v3d.submission import GivenUp


def reports() -> tuple[JobReports, Reporter]:
    inner = Reporter()
    jobs = JobReports(inner)
    jobs.begin("kmscube", "job 1", lambda address: "the vertices" if address < 0x2000 else "")
    return jobs, inner


def test_a_texture_configuration_is_said_once_for_a_program() -> None:
    jobs, inner = reports()
    for address in range(0x2000, 0x2400, 16):  # each draw has its uniforms elsewhere
        jobs.report("TMU-006", "800x600 texture with 10 mip levels", address=address)
    jobs.report("TMU-006", "40x40 texture with 2 mip levels", address=0x2000)
    assert len(inner.items) == 2
    assert inner.counts["TMU-006"] == 65
    jobs.begin("other", "other, job 1", lambda _address: "")
    jobs.report("TMU-006", "800x600 texture with 10 mip levels", address=0x2000)
    assert len(inner.items) == 3


def test_every_configuration_is_said_once() -> None:
    """Of texture messages, those about memory and coordinates have a place of their own."""
    jobs, inner = reports()
    codes = [code for code in catalogue() if code.startswith("TMU-")]
    for address in (0x2000, 0x3000):
        for code in codes:
            jobs.report(code, "the same", address=address)
    said = Counter(item.code for item in inner.items)
    assert {code for code in codes if said[code] == 1} == {f"TMU-{n:03}" for n in range(1, 12)}


def test_other_findings_keep_their_addresses() -> None:
    jobs, inner = reports()
    jobs.report("TMU-012", "outside of memory", address=0x2000)
    jobs.report("TMU-012", "outside of memory", address=0x3000)
    jobs.report("TMU-012", "outside of memory", address=0x1000)
    assert [item.message for item in inner.items] == [
        "job 1: outside of memory",
        "job 1: outside of memory",
        "job 1: outside of memory (in the vertices)",
    ]


@pytest.mark.parametrize("code", ["QPU-041", "VTX-005", "CLE-006"])
def test_what_never_ends_gives_the_job_up(code: str) -> None:
    jobs, _inner = reports()
    for _again in range(2):
        with pytest.raises(GivenUp, match="no end"):
            jobs.report(code, "no end")
