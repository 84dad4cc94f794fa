"""A virtual device for clients; skipped where the kernel takes no filter."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.support.supervised import need_supervisor

from vc4lab.drm.device.device import DrmDevice


@pytest.fixture(autouse=True)
def only_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are the host's, whatever --setup brought here once."""
    monkeypatch.setattr("vc4lab.drm.setup.programs.find_brought", lambda suite=None: None)


@pytest.fixture
def device() -> Iterator[DrmDevice]:
    """A device of default size, unpaced."""
    need_supervisor()
    with DrmDevice(paced=False, threads=1) as made:
        yield made
        made.supervisor.descriptors.sweep()
        assert not made.core.files, "files of dead programs are still open"
        assert not made.buffers.at, "buffers of dead programs are still there"


@pytest.fixture
def make_device() -> Iterator[Callable[..., DrmDevice]]:
    """Devices of other kinds: `make_device(device="xlnx")`."""
    need_supervisor()
    with ExitStack() as stack:
        made: list[DrmDevice] = []

        def make(**options: Any) -> DrmDevice:
            options = {"paced": False, "threads": 1, **options}
            made.append(stack.enter_context(DrmDevice(**options)))
            return made[-1]

        yield make
        for device in made:
            device.supervisor.descriptors.sweep()
            for driver in device.drivers.values():
                assert not driver.core.files, "files of dead programs are still open"
                assert not driver.buffers.at, "buffers of dead programs are still there"
                assert not driver.buffers.imports, "imports of dead programs are still there"
