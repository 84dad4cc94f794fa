"""Looking for input that does not come: neither a busy host nor a guest that stands still."""

from vc4lab.cli.serial_ends import InputWait
from vc4lab.soc.address.bus import INPUT_STEP


def test_guest_time_keeps_up_with_the_time_waited():
    wait = InputWait()
    looks = 10_000
    waited = sum(wait.seconds() for _ in range(looks))
    guest = looks * INPUT_STEP / 1e9
    assert 0.5 * guest < waited <= 1.001 * guest


def test_who_types_is_not_kept_waiting():
    wait = InputWait()
    for _ in range(10_000):
        assert wait.seconds() == 0.0
        wait.found()
