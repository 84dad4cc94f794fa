"""Captures: frames kept, written, read and drawn again to the same bytes."""

from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.driver.small_scene import COLOUR, HEIGHT, WIDTH, captured

from vc4lab.capture.errors import CaptureError
from vc4lab.driver.capture.load import open_capture
from vc4lab.driver.capture.model import Capture, CapturedResource
from vc4lab.driver.capture.player import Player
from vc4lab.driver.capture.state_text import parse_part
from vc4lab.driver.capture.store import files_of, part_bytes, save_capture
from vc4lab.driver.commands import commands as c
from vc4lab.mesa.protocol.codes import BlendFactor

SMALL = Path(__file__).parents[1] / "data" / "captures" / "small.vc4cap"


def pictures(capture: Capture, **options: bool) -> list[np.ndarray]:
    """The pictures of all frames, drawn again: rows of R, G, B."""
    player = Player(capture, **options)
    found = [np.asarray(shown.image()) for _, shown in player.play() if shown is not None]
    assert not player.reporter.items
    assert player.screen.processor.counts.left_out == 0
    return found


def kept_pictures(capture: Capture) -> list[np.ndarray]:
    """The pictures that were kept with the frames."""
    return [np.asarray(Image.open(BytesIO(one.picture or b""))) for one in capture.frames]


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Capture, list[np.ndarray]]:
    return captured(tmp_path_factory.mktemp("taken"))


def test_a_frame_stands_alone(taken, tmp_path):
    """Read from its archive, without the program, it has the pixels that the client got."""
    capture, pixels = taken
    save_capture(capture, tmp_path / "run.vc4cap")
    again = open_capture(tmp_path / "run.vc4cap")
    expected = [one[..., 2::-1] for one in pixels]
    assert (expected[0] != expected[1]).any()
    for drawn in (pictures(again), pictures(again, recompile=True), kept_pictures(again)):
        assert len(drawn) == 2
        for one, other in zip(drawn, expected, strict=True):
            assert (one == other).all()


def test_the_jobs_of_frames_are_in_it(taken, tmp_path):
    """They draw the same bytes without the driver, and are looked into."""
    from vc4lab.debug.frame.capture import Capture as LookedInto
    from vc4lab.jobs.load import open_jobs
    from vc4lab.jobs.player import JobsPlayer
    from vc4lab.jobs.unpack import unpack_jobs

    capture, pixels = taken
    save_capture(capture, tmp_path / "run.vc4cap")
    jobs = open_jobs(tmp_path / "run.vc4cap")
    assert [one.number for one in jobs.frames] == [1, 2]
    for (frame, result), expected in zip(JobsPlayer(jobs).play(), pixels, strict=True):
        assert result.stored
        assert not result.differing
        assert (np.asarray(result.image) == expected[..., 2::-1]).all(), frame.number
    history = LookedInto(jobs).frame(2).pixel(20, 20)
    assert history.touches
    unpack_jobs(jobs, tmp_path / "folder")
    for _, result in JobsPlayer(open_jobs(tmp_path / "folder")).play():
        assert not result.differing


def test_jobs_that_do_not_fit(tmp_path):
    """The commands of all frames are kept none the less."""
    from tests.driver.small_scene import SmallScene, server_and_drawing

    from vc4lab.driver.capture.recorder import Recorder

    said: list[str] = []
    server, drawing = server_and_drawing(tmp_path)
    try:
        recorder = Recorder(server.screen, 1, 2, limit=4096, tell=said.append)
        scene = SmallScene(drawing)
        scene.frame()
        scene.frame()
        assert recorder.is_done
    finally:
        server.close()
    assert [one.number for one in recorder.capture.frames] == [1, 2]
    assert not recorder.capture.jobs.frames
    assert len(said) == 1
    save_capture(recorder.capture, tmp_path / "run.vc4cap")
    assert open_capture(tmp_path / "run.vc4cap").jobs is None


def test_one_frame_of_several(taken, tmp_path):
    """The second frame begins with what the first one left."""
    from tests.driver.small_scene import SmallScene, server_and_drawing

    from vc4lab.driver.capture.recorder import Recorder

    server, drawing = server_and_drawing(tmp_path)
    try:
        scene = SmallScene(drawing)
        scene.frame()
        recorder = Recorder(server.screen, 2, 2)
        expected = scene.frame(right=0.2)
        scene.frame(right=-0.2)
        assert recorder.is_done
    finally:
        server.close()
    assert [one.number for one in recorder.capture.frames] == [2]
    (drawn,) = pictures(recorder.capture)
    assert (drawn == expected[..., 2::-1]).all()


def test_an_archive_is_the_same_each_time(taken, tmp_path):
    capture, _ = taken
    save_capture(capture, tmp_path / "1.vc4cap")
    save_capture(open_capture(tmp_path / "1.vc4cap"), tmp_path / "2.vc4cap")
    assert (tmp_path / "1.vc4cap").read_bytes() == (tmp_path / "2.vc4cap").read_bytes()


def test_captures_of_the_first_version():
    capture = open_capture(SMALL)
    for one, other in zip(pictures(capture), kept_pictures(capture), strict=True):
        assert one.shape == (HEIGHT, WIDTH, 3)
        assert (one == other).all()
    assert len({one.tobytes() for one in pictures(capture)}) == 2


def test_a_capture_as_objects():
    capture = open_capture(SMALL)
    frame = capture.frames[0]
    assert [one.number for one in capture.frames] == [1, 2]
    assert len(frame.draws) == 3
    state = capture.state_of(frame.draws[1])
    assert state.blend.rt[0].rgb_src_factor is BlendFactor.SRC_ALPHA
    assert np.frombuffer(state.fragment.constants[0], np.float32).tolist() == list(COLOUR)
    assert state.vertex.shader.text.startswith("VERT")
    assert state.framebuffer.size == (WIDTH, HEIGHT)
    assert state.vertex_buffers[0].resource.number in capture.resources
    uploads = [one for one in frame.commands if isinstance(one, c.Upload)]
    assert all(capture.data[one.address] for one in uploads)


def test_each_part_of_the_state_reads_back():
    """Printed, parsed, printed: the same text; and the same objects as before."""
    capture = open_capture(SMALL)
    files = dict(files_of(capture))
    again = dict(files_of(open_capture(SMALL)))
    assert files == again
    for kind, parts in capture.parts.items():
        if kind in ("shader", "constants"):
            continue
        for value in parts.values():
            text = part_bytes(kind, value).decode()
            found = parse_part(kind, text, "x", capture.resources.__getitem__)
            assert found == value


@pytest.mark.parametrize("line", ["", "index_size = 0\n", "index_size = 3\n"])
def test_indices_have_one_two_or_four_bytes(line: str) -> None:
    capture = open_capture(SMALL)
    text = f"resource = resource-{next(iter(capture.resources))}\noffset = 0\n{line}"
    with pytest.raises(CaptureError, match="index_size is one of"):
        parse_part("index_buffer", text, "index_buffer-1.txt", capture.resources.__getitem__)


def test_more_resources_than_fit_into_the_gpu_s_memory() -> None:
    capture = open_capture(SMALL)
    asked = next(one for one in capture.resources.values() if one.height > 1).description
    for handle in range(1000, 1000 + 70):
        large = replace(asked, handle=handle, width=2048, height=2048)
        capture.resources[handle] = CapturedResource(large)
    with pytest.raises(CaptureError, match=r"CAP-007.*memory"):
        Player(capture)


def test_samples_are_kept(tmp_path):
    """A frame that begins with what four samples have, a mask among its state, and resolves it."""
    from tests.driver.small_scene import WINDOW, server_and_drawing
    from tests.driver.test_samples import WHOLE, Sampled

    from vc4lab.driver.capture.folder import picture_views
    from vc4lab.driver.capture.recorder import Recorder
    from vc4lab.mesa.protocol.state_commands import SetSampleMask

    server, drawing = server_and_drawing(tmp_path)
    try:
        scene = Sampled(drawing.client)
        window = scene.texture(*scene.shapes[scene.flat][1:], scene.format, bind=WINDOW)
        scene.triangle((1, 0, 0, 1))
        scene.resolved()
        recorder = Recorder(server.screen, 1, 1)
        scene.client.submit(SetSampleMask(0b110))
        scene.triangle((0, 0, 1, 1), WHOLE)
        scene.copied(window, scene.colour)
        expected = scene.get(window)
        assert recorder.is_done
    finally:
        server.close()
    save_capture(recorder.capture, tmp_path / "run.vc4cap")
    again = open_capture(tmp_path / "run.vc4cap")
    (drawn,) = pictures(again)
    assert (drawn == expected[..., :3]).all()
    assert len(np.unique(drawn[..., 0])) > 2
    (draw,) = again.frames[0].draws
    assert again.state_of(draw).sample_mask == SetSampleMask(0b110)
    names = [name for name, _, _ in picture_views(again)]
    assert [name for name in names if "-sample" in name]
