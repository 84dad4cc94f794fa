"""Every test of the language runs for each instruction-set level this machine has, and eagerly."""

import ctypes
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from vc4lab.simd import Function, Target, build, eager, load, ptr, store, targets
from vc4lab.simd.types import Type


@pytest.fixture(autouse=True, scope="module")
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of this folder's own, and only while its tests run: others come between them."""
    before = os.environ.get("VC4LAB_CACHE")
    os.environ["VC4LAB_CACHE"] = str(tmp_path_factory.getbasetemp() / "objects")
    yield
    if before is None:
        del os.environ["VC4LAB_CACHE"]
    else:
        os.environ["VC4LAB_CACHE"] = before


@pytest.fixture(params=(*targets(), eager.TARGET), ids=lambda t: t.level)
def target(request: pytest.FixtureRequest) -> Target:
    return request.param


_NUMPY = {"i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "f32": "f4", "f64": "f8"}


@pytest.fixture(params=targets(), ids=lambda t: t.level)
def processor(request: pytest.FixtureRequest) -> Target:
    """For tests of compiled code: no eager run."""
    return request.param


@pytest.fixture
def apply(target: Target) -> Callable[..., list[np.ndarray]]:
    """apply(types, body, *arrays): runs body(*vectors) -> list of vectors, gives numpy arrays.

    It runs twice, the second time compiled quickly; both must give the same bytes.
    """

    def run(types: list[Type], body: Callable[..., Any], *arrays: Any, mode: str = "qpu") -> list[np.ndarray]:
        results: list[Type] = []

        def traced(source: Any, destination: Any) -> None:
            vectors = [load(t, source + 256 * i) for i, t in enumerate(types)]
            for i, value in enumerate(body(*vectors)):
                if value.type.elem.name == "i1":
                    value = value.zext(_i32())
                results.append(value.type)
                store(destination + 256 * i, value)

        source = ctypes.create_string_buffer(256 * max(1, len(types)))
        for i, (t, array) in enumerate(zip(types, arrays, strict=True)):
            data = np.asarray(array).astype(_NUMPY[t.elem.name]).tobytes()
            assert len(data) == t.size
            ctypes.memmove(ctypes.addressof(source) + 256 * i, data, len(data))
        outcomes = []
        for quick in (False, True):
            results.clear()
            function = {"f": Function((ptr, ptr), None, traced)}
            module = build("apply", function, target=target, float_mode=mode, quick=quick)
            destination = ctypes.create_string_buffer(256 * 64)
            module["f"](ctypes.addressof(source), ctypes.addressof(destination))
            outcomes.append(destination.raw)
        assert outcomes[0] == outcomes[1]
        return [
            np.frombuffer(destination, _NUMPY[t.elem.name], t.lanes or 1, 256 * i).copy()
            for i, t in enumerate(results)
        ]

    return run


def _i32() -> Type:
    from vc4lab.simd import i32

    return i32
