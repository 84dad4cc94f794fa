# ruff: noqa: F821, RUF059 - clients are other programs
"""Arguments that no honest program hands in: an errno for each, and the device goes on."""

import pytest
from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice


def client() -> None:
    import random

    seed, count = int(sys.argv[1]), int(sys.argv[2])
    dice = random.Random(seed)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong]
    numbers = [int(n, 16) for n in sys.argv[3].split(",")]
    files = [open_card(), open_card("renderD128"), open_card()]
    ioctl(files[0], 0x0D, "QQ", 3, 1, direction=1)
    show(files[0])
    for fd in files[:2]:
        for _ in range(4):
            create_bo(fd, 4096 << dice.randrange(6))
    memory, base = buffer(bytes(65536))
    edges = [0, 1, 2, 3, 4, 5, 7, 8, 16, 255, 256, 4096, 65535, 65536, 1 << 31, (1 << 32) - 1]
    edges += [1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]

    def word():
        return dice.choice([dice.choice(edges), base + dice.randrange(65536), dice.randrange(64)])

    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.siginterrupt(signal.SIGALRM, True)
    fatal = {errno.EIO, errno.ENOSYS}
    for _ in range(count):
        nr = dice.choice(numbers) if dice.random() < 0.97 else dice.randrange(256)
        size = dice.choice([dice.randrange(0, 200), 8, 16, 24, 32, 40, 64, 80, 104, 176])
        words = []
        while 8 * len(words) < size + 8:
            if dice.random() < 0.5:
                words.append(word())
            else:
                words.append(dice.randrange(16) | dice.choice(edges[:16]) << 32)
        data = struct.pack(f"<{len(words)}Q", *[w & (1 << 64) - 1 for w in words])
        place = base + dice.randrange(0, 60000)
        if dice.random() < 0.05:
            place = word()
        else:
            ctypes.memmove(place, data, len(data))
        if nr in (0x41, 0x42, 0xC3, 0x3A):  # not for ever
            signal.setitimer(signal.ITIMER_REAL, 0.02)
        fd = dice.choice(files)
        ctypes.set_errno(0)
        result = libc.ioctl(fd, number(nr, size, dice.randrange(4)), place)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if result < 0:
            assert ctypes.get_errno() not in fatal, (hex(nr), data)
        if dice.random() < 0.01:
            index = dice.randrange(3)
            os.close(files[index])
            files[index] = open_card(dice.choice(["card0", "renderD128"]))
    print("done")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_arguments(device: DrmDevice, seed: int) -> None:
    numbers = ",".join(f"{number:x}" for number in device.table)
    text = run_client(device, client, str(seed), "3000", numbers)
    assert text.endswith("done\n")
