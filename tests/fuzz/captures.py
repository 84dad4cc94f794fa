"""Captures of strangers and folders edited by chance: drawn, or refused with a code and a place.

Whatever is in them, nothing is written outside of the folder that was named.
"""

import contextlib
import random
import shutil
import tempfile
from pathlib import Path

from tests.fuzz.fuzzer import INTERESTING, Fuzzer, Plan, fuzzer, scribble, size_of

from vc4lab.capture.errors import CaptureError
from vc4lab.debug.frame.capture import Capture
from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.diagnostics import catalogue
from vc4lab.driver.capture.folder import folder_files, unpack
from vc4lab.driver.capture.load import open_capture
from vc4lab.driver.capture.player import Player
from vc4lab.driver.capture.show import Show
from vc4lab.jobs.dumps.clif_reader import read_clif
from vc4lab.jobs.dumps.clif_writer import clif_files
from vc4lab.jobs.dumps.hang_state import HangState, hang_state_bytes
from vc4lab.jobs.dumps.list_text import list_lines
from vc4lab.jobs.events_text import events_text
from vc4lab.jobs.load import open_jobs
from vc4lab.jobs.player import JobsPlayer
from vc4lab.jobs.unpack import folder_files as jobs_files
from vc4lab.jobs.unpack import unpack_jobs

JOBS = Path(__file__).parents[1] / "data" / "captures" / "tri.vc4cap"
SMALL = Path(__file__).parents[1] / "data" / "captures" / "small.vc4cap"
TEXT = (".txt", ".csv", ".json", ".tgsi", ".qasm")
DEBUG_CL = """MESA: info: BCL:
0x00000009 0x00000000: 0x65 Depth Offset
    Depth Offset Units: 0.000000
    Depth Offset Factor: 1.500000
0x0000000e 0x00000005: 0x04 Flush
"""
WORDS = """
none yes no -1 0 0x7fffffff 99999999999999999999 nan inf -inf 1e400 0x 0xffffffff resource-1
resource-0 resource-99 resource-999999999999 data-1 data-99 blend-1 pipe_state-1 pipe_state-2
shader_state-9 .. / ../../x \x00 \xff [ ] [] [0] [99999] {} , = # rt[7].colormask triangles points
line_loop CONST[0] CONST[99] texture_cube buffer ETC1_RGB8 X8Z24_UNORM halt dump draw clear copy
indexed index_bias=-5 count=4000000000 instances=65536 start=4294967295 box=[0,0,0,9999,9999,1]
""".split()  # noqa: SIM905


@fuzzer
class CaptureFuzzer(Fuzzer):
    """Archives with damage; folders whose words, lines and bytes were changed."""

    name = "captures"
    quick = 60
    share = 3

    def __init__(self) -> None:
        self._archive = SMALL.read_bytes()
        self._files = dict(folder_files(open_capture(SMALL)))
        self._names = sorted(self._files)

    def plan(self, rng: random.Random) -> Plan:
        if rng.random() < 0.25:
            edits = tuple(scribble(rng, 0, self._archive))
            return Plan("archive", edits, {}, size_of(edits))
        edits = []
        for _ in range(rng.choice((1, 1, 2, 4))):
            name = rng.choice(self._names)
            data = self._files[name]
            if not data or (name.endswith(TEXT) and rng.random() < 0.8):
                edits.append((name, self._words(rng, data)))
            elif rng.random() < 0.1:
                edits.append((name, None))
            else:
                changed = bytearray(data)
                for place, new in scribble(rng, 0, data):
                    changed[place : place + len(new)] = new
                edits.append((name, bytes(changed)))
        return Plan("folder", tuple(edits), {"recompile": rng.random() < 0.3}, 40 * len(edits))

    def _words(self, rng: random.Random, data: bytes) -> bytes:
        """A text with other words, or with lines in another order."""
        lines = data.decode("utf-8", "replace").split("\n")
        for _ in range(rng.choice((1, 1, 2, 3))):
            at = rng.randrange(len(lines))
            kind = rng.randrange(5)
            if kind == 0:
                lines.insert(rng.randrange(len(lines)), lines[at])
            elif kind == 1 and len(lines) > 1:
                lines.pop(at)
            else:
                words = lines[at].replace("=", " = ").replace(",", " , ").split(" ")
                word = rng.choice((*WORDS, str(rng.choice(INTERESTING))))
                words[rng.randrange(len(words))] = word
                lines[at] = " ".join(words).replace(" = ", "=").replace(" , ", ",")
        return "\n".join(lines).encode("utf-8", "replace")

    def run(self, plan: Plan) -> None:
        scratch = Path(tempfile.mkdtemp())
        try:
            self._run(plan, scratch / "inside")
            left = {one.name for one in scratch.iterdir()}
            assert left <= {"inside"}, left
        finally:
            shutil.rmtree(scratch)

    def _run(self, plan: Plan, folder: Path) -> None:
        folder.mkdir()
        try:
            if plan.scene == "archive":
                data = bytearray(self._archive)
                for place, new in plan.edits:
                    data[place : place + len(new)] = new
                path = folder / "x.vc4cap"
                path.write_bytes(data)
                self.open(path, folder / "unpacked")
            else:
                files = {**self._files, **dict(plan.edits)}
                for name, data in files.items():
                    if data is not None:
                        (folder / name).parent.mkdir(parents=True, exist_ok=True)
                        (folder / name).write_bytes(data)
                self.open(folder, None, recompile=plan.options.get("recompile", False))
        except CaptureError as error:
            if error.code not in catalogue() or not error.text:
                raise AssertionError(f"{error!r} has no code or no text") from error

    def open(self, path: Path, unpacked: Path | None, *, recompile: bool = False) -> None:
        """Read a capture, show it and draw it. Raises CaptureError."""
        capture = open_capture(path)
        if unpacked is not None:
            unpack(capture, unpacked)
        for _ in Show(capture).lines():
            pass
        for _, picture in Player(capture, recompile=recompile).play():
            if picture is not None:
                _image(picture)


@fuzzer
class JobCaptureFuzzer(CaptureFuzzer):
    """The same with captured jobs: events, pages, states of a V3D, lists and their text."""

    name = "job captures"

    def __init__(self) -> None:
        self._archive = JOBS.read_bytes()
        self._files = dict(jobs_files(open_jobs(JOBS)))
        self._names = sorted(self._files)

    def open(self, path: Path, unpacked: Path | None, *, recompile: bool = False) -> None:
        """Read a capture, show it and run it. Raises CaptureError."""
        del recompile
        capture = open_jobs(path)
        if unpacked is not None:
            unpack_jobs(capture, unpacked)
        for frame, _ in JobsPlayer(capture).play():
            events_text(frame)


DUMP_WORDS = """
@buffer @format @add_bin @add_render @createbuf_aligned ctrllist binary blank shadrec_gl_main
shadrec_gl_attr HALT BRANCH BRANCH_TO_SUB-LIST GL_SHADER_STATE [null] [a+0x0] [memory_0x02109000+0xffffffff]
0x 0x0 0xffffffff 0x123456789 -1 nan inf 1e39 4096 99999999999 /* */ 0x00000000
""".split()  # noqa: SIM905


@fuzzer
class DumpFuzzer(CaptureFuzzer):
    """Dumps of other tools: CLIF, hang states, lists as Mesa prints them."""

    name = "dumps"

    def __init__(self) -> None:
        ((_, clif),) = clif_files(open_jobs(JOBS))
        job = read_clif(clif, "x")
        (binning, rendering), values = job.lists, {"CT0EA": job.lists[0].end, "CT1EA": job.lists[1].end}
        state = HangState(binning.start, rendering.start, values)
        self._archive = hang_state_bytes(state, job.buffers)
        self._files = {"x.clif": clif, "x.txt": DEBUG_CL.encode()}
        self._names = sorted(self._files)

    def _words(self, rng: random.Random, data: bytes) -> bytes:
        lines = data.decode().split("\n")
        for _ in range(rng.choice((1, 2, 5))):
            at = rng.randrange(len(lines))
            kind = rng.randrange(4)
            if kind == 0:
                lines.insert(rng.randrange(len(lines)), lines[at])
            elif kind == 1:
                lines.pop(at)
                lines = lines or [""]
            else:
                words = lines[at].split(" ")
                words[rng.randrange(len(words))] = rng.choice((*DUMP_WORDS, str(rng.choice(INTERESTING))))
                lines[at] = " ".join(words)
        return "\n".join(lines).encode()

    def _run(self, plan: Plan, folder: Path) -> None:
        folder.mkdir()
        files: dict[str, bytes | None] = dict(plan.edits) if plan.scene == "folder" else {}
        if plan.scene == "archive":
            data = bytearray(self._archive)
            for place, new in plan.edits:
                data[place : place + len(new)] = new
            files["x.dump"] = bytes(data)
        for name, content in files.items():
            (folder / name).write_bytes(content or b"")
            try:
                if name == "x.txt":
                    for _ in list_lines(content or b"", name):
                        pass
                else:
                    self.open(folder / name, folder / f"{name}-unpacked")
            except CaptureError as error:
                if error.code not in catalogue() or not error.text:
                    raise AssertionError(f"{error!r} has no code or no text") from error

    def open(self, path: Path, unpacked: Path | None, *, recompile: bool = False) -> None:
        """Read a dump, run it, and write it as text. Raises CaptureError."""
        del recompile
        capture = open_jobs(path)
        for frame, _ in JobsPlayer(capture).play():
            events_text(frame)
        for _ in clif_files(capture):
            pass
        if unpacked is not None:
            unpack_jobs(capture, unpacked)


@fuzzer
class LookedIntoFuzzer(JobCaptureFuzzer):
    """The same with frames that are asked how they came about."""

    name = "frames looked into"
    quick = 24

    def open(self, path: Path, unpacked: Path | None, *, recompile: bool = False) -> None:
        """Ask a frame for pictures, a pixel and a vertex. Raises CaptureError."""
        del unpacked, recompile
        frame = Capture(open_jobs(path)).frames[-1]
        for ask in (
            lambda: frame.picture_after(len(frame.draws)),
            lambda: frame.pixel(20, 20, program=True),
            lambda: frame.vertex(1, 1),
            lambda: frame.overlay("depth"),
            lambda: frame.overlay("primitives", len(frame.draws)),
        ):
            with contextlib.suppress(NoSuchPlace):
                ask()


def _image(picture: object) -> None:
    from vc4lab.mesa.store.resources import Refused

    try:
        picture.image()  # type: ignore[attr-defined]
    except Refused:
        return  # depth was drawn to last
