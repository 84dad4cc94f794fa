"""Why a polled register stays as it is, in words."""

import pytest
from tests.support.frames import Frame
from tests.support.jobs import CT0CA, CT0EA

from vc4lab.records.control import build
from vc4lab.v3d.registers import BY_NAME, PipelineStatus
from vc4lab.v3d.waits import describe_wait


def why(frame: Frame, name: str) -> str:
    offset = BY_NAME[name].offset
    return str(describe_wait(frame.v3d, offset, frame.v3d.read(offset)))


@pytest.mark.parametrize("name", ["BFC", "INTCTL", "PCS", "CT0CS"])
def test_nothing_was_started(name: str) -> None:
    assert "no binning list was started" in why(Frame(), name)


def test_the_wrong_counter() -> None:
    frame = Frame()
    start, end, _lists = frame.job.binning(b"")
    frame.v3d.write(CT0CA, start)
    frame.v3d.write(CT0EA, end)
    assert "no rendering list was started" in why(frame, "RFC")
    text = why(frame, "BFC")
    assert f"the binning list has ended at 0x{end:08x}" in text
    assert "it has counted to 1" in text
    assert "FLDONE=1: binning is complete" in why(frame, "INTCTL")
    assert "no interrupt of the V3D is enabled" in why(frame, "INTCTL")


def test_lists_that_do_not_count() -> None:
    frame = Frame()
    start, end, _lists = frame.job.binning(b"", flush=b"\x01")
    frame.v3d.write(CT0CA, start)
    frame.v3d.write(CT0EA, end)
    assert "without a Flush" in why(frame, "BFC")
    frame.run(build(1))
    assert "without an end of frame" in why(frame, "RFC")


def test_lists_that_stopped_before_their_end() -> None:
    frame = Frame()
    frame.run(build(0) + build(1))
    assert f"the rendering list is halted at 0x{frame.first + 1:08x}" in why(frame, "CT1CA")
    frame.run(build(1) + b"\xff")
    stopped = f"the rendering list stopped with an error at 0x{frame.first + 1:08x}"
    assert stopped in why(frame, "CT1CS")


def test_pcs_bits_are_explained() -> None:
    frame = Frame()
    frame.run(build(8))
    text = why(frame, "PCS")
    assert PipelineStatus.layout_fields["RMACTIVE"].doc in text
    assert "none of its bits except BMOOM is an error" in text
    assert "waits for record 8" in text


def test_user_programs_and_unknown_registers() -> None:
    frame = Frame()
    assert "0 user programs were requested" in why(frame, "SRQCS")
    assert describe_wait(frame.v3d, 0x010, 0) is None
    assert describe_wait(frame.v3d, 0xFFC, 0) is None
