"""Paths through the lists: record 96 sends them to the coverage pipe, a program reads them."""

import numpy as np
import pytest
from tests.support.frames import Frame, inside
from tests.support.jobs import viewport
from tests.v3d.cle.test_vg import ENGINES, FAN, STRIP, A, B, C, D, E, array
from tests.v3d.pse.test_coverage_pipe import READ_TEXT as READ

from vc4lab.records.states import ConfigurationBits

CORNERS = ((0.0, 0.0), (128.0, 0.0), (0.0, 128.0), (128.0, 128.0))


def mode(**fields: int) -> bytes:
    """Record 96: both faces, depth test always."""
    both = {"enable_forward": 1, "enable_reverse": 1, "depth_test": 7}
    return b"\x60" + ConfigurationBits.make(**both, **fields).value.to_bytes(3, "little")


@pytest.mark.parametrize("options", ENGINES)
def test_a_path_and_its_paint(options: dict[str, object]) -> None:
    """Accumulated twice with the odd rule: what is covered twice is not painted."""
    frame = Frame(**options)
    paint = array(frame, STRIP, *CORNERS)
    accumulate = mode(coverage_pipe=1, oversample=2, coverage_update=1)
    body = viewport(frame.job) + frame.vg_shader(READ) + mode() + paint  # clears
    body += accumulate + frame.vg_shader(READ) + array(frame, FAN, A, B, C, D)
    body += array(frame, FAN, C, D, E)
    body += mode(coverage_read_mask=1) + frame.vg_shader(READ) + paint
    picture = frame.bin(body)
    once = [inside(frame, shape) for shape in ((A, B, C), (A, C, D), (C, D, E))]
    whole = np.logical_xor.reduce(once)
    level = np.vectorize(lambda word: bin(word).count("1"))(picture & 0xFFFF)
    assert not (picture >> 16).any()
    # the pixel's centre says the same as its samples, but for the edge
    assert (level[whole] > 0).all()
    assert (level[~whole] < 16).all()
    assert (level == 16).sum() > 0.8 * whole.sum()
    assert ((level > 0) & (level < 16)).any()
    assert not frame.reporter.items, frame.reporter.summary()


def test_no_program_runs_while_a_path_accumulates() -> None:
    """Its shader would paint everything; the picture stays as it was cleared."""
    frame = Frame()
    body = viewport(frame.job) + frame.vg_shader(READ)
    body += mode(coverage_pipe=1, oversample=2) + frame.vg_shader(READ)
    picture = frame.bin(body + array(frame, STRIP, *CORNERS))
    assert len(np.unique(picture)) == 1
    assert not frame.reporter.items, frame.reporter.summary()


def test_the_same_path_in_a_multisample_frame() -> None:
    """Its 16 samples do not depend on the frame's four; that it is not documented is reported."""
    pictures = []
    for tile, options in (((64, 64), {}), ((32, 32), {"multisample": 1})):
        frame = Frame(tile=tile)
        paint = array(frame, STRIP, *CORNERS)
        accumulate = mode(coverage_pipe=1, oversample=2, coverage_update=1)
        body = viewport(frame.job) + frame.vg_shader(READ) + mode() + paint  # clears
        body += accumulate + frame.vg_shader(READ) + array(frame, FAN, A, B, C, D)
        body += mode(coverage_read_mask=1) + frame.vg_shader(READ) + paint
        start, end, lists = frame.job.binning(body, **options)
        rendering = frame.job.rendering(lists, frame.surface, **options)
        frame.job.run(frame.v3d, (start, end), rendering)
        pictures.append(frame.pixels())
        assert frame.reporter.has("FRG-004") == bool(options)
    assert np.array_equal(*pictures)
    assert len(np.unique(pictures[0])) > 10
