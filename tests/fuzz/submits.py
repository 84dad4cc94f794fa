"""Recorded driver submits with damaged descriptions, lists, shader records and uniforms."""

import json
import os
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

from tests.fuzz import world
from tests.fuzz.fuzzer import Fuzzer, Plan, fuzzer, scribble, word

from vc4lab.diagnostics import StrictStop
from vc4lab.drm.recorded.replay import replay

_RUNS = (("tri_arm64", "job0001"), ("glmark2_texture_texture-filter_mipmap", "job0003"))
_STREAMS = ("bin_cl", "shader_rec", "uniforms")
_ODD = (None, True, False, -1, 1 << 64, 1.5, float("inf"), "", "0", [], {}, [[]], "x" * 300)


@fuzzer
class SubmitFuzzer(Fuzzer):
    """Whole runs of one job, replayed from files."""

    name = "submits"
    quick = 25
    share = 20
    v3d = True

    def __init__(self) -> None:
        os.environ["VC4LAB_GUARD"] = "1"
        self.directory: Path | None = None
        self.owner = 0

    def plan(self, rng: random.Random) -> Plan:
        run, job = rng.choice(_RUNS)
        folder = world.JOBS / run / job
        edits: list[Any] = []
        units = 0
        if rng.random() < 0.6:
            for _ in range(rng.choice((1, 1, 2, 5))):
                edits.append(("field", self._field(rng, folder)))
                units += 4
        if rng.random() < 0.05:
            text = (folder / "submit.json").read_bytes()
            edits += [("text", edit) for edit in scribble(rng, 0, text)]
        while not edits or rng.random() < 0.5:
            name = rng.choice(_STREAMS)
            data = (folder / f"{name}.bin").read_bytes()
            if not data:
                continue
            if rng.random() < 0.05:
                edits.append((name, (0, data[: rng.randrange(len(data))], True)))
            else:
                changes = scribble(rng, 0, data)
                units += sum(len(new) for _, new in changes)
                edits += [(name, (at, new, False)) for at, new in changes]
        options = {"strict": rng.random() < 0.1}
        return Plan(f"{run}/{job}", tuple(edits), options, units)

    def _field(self, rng: random.Random, folder: Path) -> tuple[tuple[Any, ...], Any]:
        """A path into the description, and what goes there."""
        node: Any = json.loads((folder / "submit.json").read_text())
        path: list[Any] = []
        while isinstance(node, dict | list) and node:
            key = rng.choice(sorted(node) if isinstance(node, dict) else list(range(len(node))))
            path.append(key)
            node = node[key]
        value: Any = rng.choice((*_ODD, word(rng), word(rng), word(rng), rng.randrange(300)))
        if isinstance(node, int) and rng.random() < 0.5:
            value = node ^ 1 << rng.randrange(20)
        return tuple(path), value

    def run(self, plan: Plan) -> None:
        if self.owner != os.getpid():  # a batch has its own folder
            self.owner = os.getpid()
            self.directory = Path(tempfile.mkdtemp(prefix="vc4lab-fuzz-"))
            (self.directory / "blobs").symlink_to(world.JOBS / "blobs")
        assert self.directory is not None
        source = world.JOBS / plan.scene
        target = self.directory / "run" / source.name
        target.mkdir(parents=True, exist_ok=True)
        try:
            self._write(plan, source, target)
            replay(target, strict=plan.options["strict"], threads=1)
        except StrictStop:
            assert plan.options["strict"]
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)
            self.owner = 0

    def _write(self, plan: Plan, source: Path, target: Path) -> None:
        files = {name: bytearray((source / f"{name}.bin").read_bytes()) for name in _STREAMS}
        table = json.loads((source / "submit.json").read_text())
        for kind, edit in plan.edits:
            if kind == "field":
                _set(table, *edit)
            elif kind != "text":
                at, new, cut = edit
                files[kind][at : None if cut else at + len(new)] = new
        text = bytearray(json.dumps(table).encode())
        for kind, edit in plan.edits:
            if kind == "text":
                text[edit[0] : edit[0] + len(edit[1])] = edit[1]
        (target / "submit.json").write_bytes(text)
        for name, data in files.items():
            (target / f"{name}.bin").write_bytes(data)


def _set(table: Any, path: tuple[Any, ...], value: Any) -> None:
    """Sets an entry of nested lists and dictionaries; a path that is gone is left."""
    try:
        for key in path[:-1]:
            table = table[key]
        table[path[-1]] = value
    except (LookupError, TypeError):
        return
