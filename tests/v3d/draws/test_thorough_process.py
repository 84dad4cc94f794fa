"""The process for thorough builds: what it makes, and what happens when it ends."""

import io
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from vc4lab.qpu.text.assembler import assemble
from vc4lab.v3d.draws import thorough_process
from vc4lab.v3d.draws.thorough_process import SIZE, NotBuilt, ThoroughProcess, answer
from vc4lab.v3d.fragment.pipeline import thorough_object
from vc4lab.v3d.state.tile_context import FragmentKey

WORDS = assemble("nop ; nop ; sbwait\nmov tlbc, unif ; nop ; thrend\nnop\nnop ; nop ; sbdone\n").words
KEY = FragmentKey(tuple(WORDS))
SECONDS = 60.0


@pytest.fixture
def process() -> Iterator[ThoroughProcess]:
    made = ThoroughProcess()
    yield made
    made.end()


def number_of(process: ThoroughProcess) -> int:
    assert process._process is not None
    return process._process.pid


def test_it_makes_what_this_process_would_make(process: ThoroughProcess) -> None:
    KEY.whole_program.instructions  # noqa: B018 - keys that were used have this; it stays here
    assert process.build(KEY) == thorough_object(KEY)
    number = number_of(process)
    other = FragmentKey(KEY.program, multisample=True)
    assert process.build(other) == thorough_object(other) != thorough_object(KEY)
    assert number_of(process) == number
    process.end()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_process_that_was_killed_is_replaced(process: ThoroughProcess) -> None:
    process.build(KEY)
    os.kill(number_of(process), signal.SIGKILL)
    with pytest.raises(NotBuilt):
        process.build(KEY)
    assert process.build(KEY)


def test_a_build_that_takes_too_long_is_given_up(
    process: ThoroughProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.build(KEY)
    number = number_of(process)
    os.kill(number, signal.SIGSTOP)
    monkeypatch.setattr(thorough_process, "LONGEST", 0.1)
    with pytest.raises(NotBuilt, match="given up"):
        process.build(KEY)
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_program_that_ends_does_not_wait() -> None:
    process = ThoroughProcess(lambda: False)
    with pytest.raises(NotBuilt, match="given up"):
        process.build(KEY)
    assert process._process is None


@pytest.mark.parametrize(("name", "why"), [("/no/such/python", "No such file"), ("", "not known")])
def test_a_host_that_starts_no_process(
    process: ThoroughProcess, monkeypatch: pytest.MonkeyPatch, name: str, why: str
) -> None:
    monkeypatch.setattr(sys, "executable", name)
    with pytest.raises(NotBuilt, match=why):
        process.build(KEY)


def test_a_program_with_many_descriptors(process: ThoroughProcess) -> None:
    """`vc4lab gl` has one for each resource of its clients, and raises the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip(f"at most {hard} descriptors are allowed here (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        assert process.build(KEY) == thorough_object(KEY)
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_long_programs_are_left(process: ThoroughProcess) -> None:
    with pytest.raises(NotBuilt, match="length"):
        process.build(FragmentKey(tuple(WORDS) * 2000))
    assert process._process is None


def test_what_cannot_be_built_is_an_empty_answer() -> None:
    wrong = FragmentKey(tuple(assemble("nop ; nop ; ldtmu0\nmov tlbc, r4 ; nop ; thrend\n").words))
    data = b"".join(SIZE.pack(len(one)) + one for one in map(pickle.dumps, (wrong, FragmentKey(KEY.program))))
    replies = io.BytesIO()
    answer(io.BytesIO(data + b"cut"), replies)
    image = thorough_object(KEY)
    assert replies.getvalue() == SIZE.pack(0) + SIZE.pack(len(image)) + image


PROGRAM = """
import os, sys, time
from tests.v3d.draws.test_thorough_process import KEY
from vc4lab.v3d.draws.thorough_process import ThoroughProcess

process = ThoroughProcess()
process.build(KEY)
print(process._process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


def test_it_ends_with_a_program_that_is_killed() -> None:
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=root, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    end = time.monotonic() + SECONDS
    stat = Path(f"/proc/{int(done.stdout)}/stat")
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < end
        time.sleep(0.02)
