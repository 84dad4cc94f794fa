"""Damaged files in the cache of compiled code: they are ignored, and the code is right."""

import os
import random
import tempfile
from pathlib import Path

from tests.fuzz.fuzzer import Fuzzer, Plan, fuzzer, scribble, size_of

from vc4lab.simd import Value, build, i32, kernel


@fuzzer
class CacheFuzzer(Fuzzer):
    """One small kernel, its object damaged before the next start asks for it."""

    name = "cache"
    quick = 20
    share = 1

    def __init__(self) -> None:
        @kernel(args=(i32,), returns=i32)
        def double(x: Value) -> Value:
            return x + x + 1

        self.kernel = double
        self.whole: bytes | None = None

    def plan(self, rng: random.Random) -> Plan:
        kind = rng.random()
        if kind < 0.2:
            edits = [(0, rng.randbytes(rng.choice((0, 1, 16, 47, 48, 49, 5000))))]
            return Plan("replaced", tuple(edits), {}, size_of(edits))
        if kind < 0.4:
            return Plan("cut", ((rng.randrange(3000), b""),), {}, 1)
        edits = scribble(rng, 0, self._object())
        return Plan("damaged", tuple(edits), {}, size_of(edits))

    def _object(self) -> bytes:
        if self.whole is None:
            with tempfile.TemporaryDirectory() as folder:
                self._build(folder)
                self.whole = min(Path(folder).rglob("*.o")).read_bytes()
        return self.whole

    def _build(self, folder: str) -> int:
        old = os.environ.get("VC4LAB_CACHE")
        os.environ["VC4LAB_CACHE"] = folder
        try:
            return int(build("fuzz", {"double": self.kernel}, key="fuzz")["double"](20))
        finally:
            if old is None:
                del os.environ["VC4LAB_CACHE"]
            else:
                os.environ["VC4LAB_CACHE"] = old

    def run(self, plan: Plan) -> None:
        data = bytearray(self._object())
        with tempfile.TemporaryDirectory() as folder:
            assert self._build(folder) == 41
            # The same object by its key and by its LLVM text: one of them, or both.
            paths = sorted(Path(folder).rglob("*.o"))
            assert len(paths) == 2
            for at, new in plan.edits:
                if plan.scene == "damaged":
                    data[at : at + len(new)] = new
                else:
                    data[at:] = new
            for path in paths[plan.edits[0][0] % 3 == 0 :]:
                path.write_bytes(data)
            assert self._build(folder) == 41
