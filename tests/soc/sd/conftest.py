"""A card of 3000 sectors, each of its own pattern, and machines that have it."""

import pytest
from tests.soc.sd.host import Host, pattern

from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.machine import Machine

HALT = bytes.fromhex("feffffea")
SECTORS = 3000


@pytest.fixture
def image(tmp_path):
    path = tmp_path / "card.img"
    path.write_bytes(b"".join(pattern(n) for n in range(SECTORS)))
    return path


@pytest.fixture
def make(tmp_path, image):
    def machine(**options) -> Machine:
        kernel = tmp_path / "kernel.bin"
        kernel.write_bytes(HALT)
        options.setdefault("card", image)
        return Machine(kernel, serial=SerialPort(), **options)

    return machine


@pytest.fixture
def host(make):
    host = Host(make())
    host.identify()
    return host
