"""Fences, and sync files of programs that are looked up while they become done."""

import os
from pathlib import Path

from vc4lab.drm.objects.fences import Fence, SyncFiles, all_of
from vc4lab.drm.processes.targets import DescriptorInfo


def info_of(descriptor: int) -> DescriptorInfo:
    return DescriptorInfo(Path(f"/proc/self/fdinfo/{descriptor}").read_bytes())


def test_a_sync_file_is_found_while_its_fence_becomes_done() -> None:
    files = SyncFiles()
    fence = Fence()
    descriptor = files.make(fence)
    found = files.find(lambda: info_of(descriptor))
    assert found is fence

    def looks_early() -> DescriptorInfo:
        info = info_of(descriptor)
        fence.signal()  # by the GPU's thread, just now
        return info

    found = files.find(looks_early)
    assert found is not None
    assert found.is_done
    os.close(descriptor)


def test_other_descriptors_are_no_sync_files() -> None:
    files = SyncFiles()
    event = os.eventfd(0)
    assert files.find(lambda: info_of(event)) is None
    assert files.find(lambda: None) is None
    os.close(event)


def test_all_of_many_fences() -> None:
    fences = [Fence() for _ in range(3)]
    both = all_of([*fences, Fence(done=True)])
    order = []
    both.then(lambda: order.append("done"))
    for fence in fences:
        assert not both.is_done
        fence.signal()
        fence.signal()
    assert both.is_done
    assert order == ["done"]
    assert all_of([]).is_done
