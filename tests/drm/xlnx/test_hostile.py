# ruff: noqa: F821 - clients are other programs
"""Nonsense on both drivers' nodes: an errno each time, and the device goes on."""

from collections.abc import Callable

import pytest
from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice

Make = Callable[..., DrmDevice]


@pytest.mark.parametrize("seed", range(3))
def test_random_calls_on_two_drivers(make_device: Make, seed: int) -> None:
    device = make_device(device="xlnx", cpu_memory="pi3", gpu_memory=8 << 20)

    def client() -> None:
        import random

        choose = random.Random(int(sys.argv[1]))
        files = [open_card(), open_card("renderD128"), open_card("card1")]
        numbers = (
            *((0x40, 16), (0x41, 16), (0xB2, 32), (0xB3, 16), (0xB4, 4), (0x2D, 12)),
            *((0x2E, 12), (0xAE, 28), (0x09, 8), (0x43, 16), (0x44, 16), (0x4B, 16)),
        )
        small = (0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 255, 256, 4096)
        large = (0x7FFFFFFF, 0xFFFFFFFF, 0x80000000, 0x10000, 900, 901, 905)
        descriptors = []
        for _ in range(1500):
            nr, size = choose.choice(numbers)
            words = [choose.choice(choose.choice((small, small, large))) for _ in range(size // 4)]
            data = bytearray(struct.pack(f"<{len(words)}I", *words))
            file = files[0] if nr == 0x41 else choose.choice(files)  # WAIT_SEQNO elsewhere
            try:
                fcntl.ioctl(file, number(nr, size), data)
                if nr == 0x2D:
                    descriptors.append(struct.unpack_from("<i", data, 8)[0])
                if nr in (0xB3, 0x44):
                    place = struct.unpack_from("<Q", data, 8)[0]
                    view = mmap.mmap(file, 4096, offset=place)
                    view[:8] = b"scribble"
                    view.close()
            except OSError:
                pass
            if len(descriptors) > 20:
                os.close(descriptors.pop(choose.randrange(21)))
        # the device is as it was
        set_param(files[0], 2, 8)
        set_param(files[0], 4, 0)
        for descriptor in descriptors:
            os.close(descriptor)
        for file in files:
            os.close(file)
        fd = open_card()
        assert dumb_of(fd, 100, 10, 32, 0)[1] == 400
        assert [get_param(fd, n) for n in range(5)] == [0x53620C75, 256, 8, 1, 0]

    run_client(device, client, str(seed))
