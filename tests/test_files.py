"""Files of the host: limits on what is read, whole files or none of what is written."""

import errno
import io
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from vc4lab.files import Unusable, read_file, read_source, read_stream, size_text, write_file, written_whole


def test_sizes_in_words():
    assert [size_text(n) for n in (1000, 1 << 10, 3 << 19, 16 << 20, 2 << 30)] == [
        "1000 bytes", "1 KiB", "1536 KiB", "16 MiB", "2 GiB",
    ]  # fmt: skip


@pytest.mark.parametrize("size", [0, 1, 99, 100])
def test_what_fits_is_read(tmp_path, size):
    path = tmp_path / "data"
    path.write_bytes(bytes(range(size)))
    assert read_file(path, 100) == read_file(path, 100, plain=True) == bytes(range(size))


def test_what_is_larger_is_refused_by_name(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(bytes(101))
    with pytest.raises(Unusable, match="limit of 100 bytes") as caught:
        read_file(path, 100)
    assert caught.value.filename == str(path)
    with pytest.raises(Unusable, match="limit of 2 MiB"):
        read_stream(io.BytesIO(bytes(3 << 20)), 2 << 20, "stream")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no devices here")
def test_endless_devices(tmp_path):
    with pytest.raises(Unusable, match="limit of 1 MiB"):
        read_file("/dev/zero", 1 << 20)
    with pytest.raises(Unusable, match="not a regular file"):
        read_file("/dev/zero", 1 << 20, plain=True)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Unusable, match="not a regular file"):
        read_file(tmp_path / "pipe", 100, plain=True)


def test_standard_input_that_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(OSError, match="is closed"):
        read_source("-", 100)


def test_a_whole_file_or_the_old_one(tmp_path):
    path = tmp_path / "picture"
    write_file(path, b"old")

    def interrupted() -> None:
        with written_whole(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    write_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["picture"]


def test_modes_and_links_stay(tmp_path):
    path, link = tmp_path / "data", tmp_path / "link"
    before = os.umask(0o022)
    try:
        write_file(path, b"1")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    path.chmod(0o600)
    link.symlink_to("data")
    write_file(link, b"2")
    assert link.is_symlink()
    assert path.read_bytes() == b"2"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_long_names(tmp_path):
    write_file(tmp_path / ("n" * 255), b"x")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_device_is_written_as_it_is():
    with pytest.raises(OSError, match="/dev/full") as caught:
        write_file("/dev/full", b"x")
    assert caught.value.errno == errno.ENOSPC
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="no /dev/stdout here")
def test_standard_output_by_name(tmp_path):
    code = "from vc4lab.files import write_file; write_file('/dev/stdout', b'x'); print('y')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("xy\n", "")
    with (tmp_path / "out").open("w") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    assert "y\n" in (tmp_path / "out").read_text()


def test_errors_name_the_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write_file(tmp_path / "no" / "file", b"x")
    assert caught.value.filename == str(tmp_path / "no" / "file")


FULL_DISK = """
import resource, signal, sys
from vc4lab.files import write_file
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_file(sys.argv[1], bytes(100_000))
except OSError as error:
    print(error.errno, error.filename)
"""


def test_a_disk_without_room_leaves_the_old_file(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(b"old")
    command = [sys.executable, "-c", FULL_DISK, path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(errno.EFBIG), str(path)]
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["data"]
