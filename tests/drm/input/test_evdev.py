# ruff: noqa: F821, F841, PT017, RUF059, SIM115 - clients are other programs
"""Keyboard and pointer as programs see them: nodes, ioctls, reading, waiting, several openers."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from tests.support.drm_client import run_client
from tests.support.supervised import need_supervisor

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.input.sink import Input

HELPERS = '''
EV = struct.Struct("<qqHHi")

def evioc(nr, size, direction=READ):
    return direction << 30 | size << 16 | 0x45 << 8 | nr

def ask(fd, nr, size):
    """The bytes that an ioctl stores, as many as it says."""
    data = bytearray(size)
    count = fcntl.ioctl(fd, evioc(nr, size), data)
    return bytes(data[:count] if count else data)

def number_of(fd, request, argument=0):
    """The errno of an ioctl, 0 for none."""
    try:
        fcntl.ioctl(fd, request, argument)
    except OSError as error:
        return error.errno
    return 0

def have(fd, count, seconds=60):
    """So many events as (type, code, value)."""
    found = []
    while len(found) < count:
        assert select.select([fd], [], [], seconds)[0], found
        data = os.read(fd, 24 * (count - len(found)))
        found += [e[2:] for e in EV.iter_unpack(data)]
    return found

def node(number, flags=os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC):
    return os.open(f"/dev/input/event{number}", flags)

'''


@pytest.fixture
def with_input() -> Iterator[DrmDevice]:
    need_supervisor()
    with DrmDevice(paced=False, threads=1, input=True) as made:
        yield made
        assert made.input is not None
        assert not any(device.files for device in made.input.devices)
        assert not made.supervisor._watched


def run(
    device: DrmDevice,
    client: Callable[[], None],
    play: Callable[[Input, Callable[[int], None]], None] | None = None,
    expect: int | None = 0,
) -> str:
    """Run a client; `play` is called with the input and what waits until it has opened so many nodes."""
    assert device.input is not None
    source = device.input
    if play is not None:
        opened = threading.Semaphore(0)
        plain = source.open

        def seen(node: str, caller: object) -> object:
            found = plain(node, caller)  # type: ignore[arg-type]
            opened.release()
            return found

        source.open = seen  # type: ignore[method-assign, assignment]

        def more(count: int) -> None:
            for _ in range(count):
                opened.acquire(timeout=60)

        threading.Thread(target=play, args=(source, more), daemon=True).start()
    return run_client(device, client, helpers=HELPERS, expect=expect)


def test_nodes_are_where_libudev_looks(with_input: DrmDevice) -> None:
    def client() -> None:
        assert sorted(os.listdir("/dev/input")) == ["event0", "event1"]
        names = sorted(os.listdir("/sys/class/input"))
        assert names == ["event0", "event1", "input0", "input1"]
        found = os.stat("/dev/input/event1")
        assert stat.S_ISCHR(found.st_mode)
        assert (os.major(found.st_rdev), os.minor(found.st_rdev)) == (13, 65)
        fd = node(1)
        assert 800 <= fd < 900
        assert os.fstat(fd).st_rdev == found.st_rdev
        assert os.readlink(f"/proc/self/fd/{fd}") == "/dev/input/event1"
        again = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
        assert os.fstat(again).st_rdev == found.st_rdev
        place = os.path.realpath("/sys/dev/char/13:64")
        assert place == "/sys/devices/virtual/input/input0/event0"
        assert open(place + "/dev").read() == "13:64\n"
        assert open(place + "/device/name").read() == "vc4lab keyboard\n"
        assert "ID_INPUT_KEYBOARD=1" in open("/run/udev/data/c13:64").read()
        assert "ID_INPUT_MOUSE=1" in open("/run/udev/data/c13:65").read()
        words = open(place + "/device/capabilities/key").read().split()
        bits = ask(fd := node(0), 0x21, 96)
        assert int("".join(w.rjust(16, "0") for w in words), 16) == int.from_bytes(bits, "little")

    run(with_input, client)


def test_libudevs_way_through_links_ends_below_devices(with_input: DrmDevice) -> None:
    """systemd's chase_symlinks: component by component, each opened as what it is."""

    def client() -> None:
        for path, end in (
            ("sys/class/input/event0", "/sys/devices/virtual/input/input0/event0"),
            ("sys/dev/char/13:65", "/sys/devices/virtual/input/input1/event1"),
            ("sys/dev/char/226:0", "/sys/devices/platform/soc/soc:gpu/drm/card0"),
        ):
            todo, done = path.split("/"), []
            fd = os.open("/", os.O_PATH | os.O_CLOEXEC)
            while todo:
                name = todo.pop(0)
                child = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
                if stat.S_ISLNK(os.fstat(child).st_mode):
                    todo = os.readlink(name, dir_fd=fd).split("/") + todo
                    continue
                if name == "..":
                    done.pop()
                else:
                    done.append(name)
                os.close(fd)
                fd = child
            assert "/" + "/".join(done) == end, done

    run(with_input, client)


def test_without_input_there_are_no_nodes(device: DrmDevice) -> None:
    def client() -> None:
        assert os.listdir("/dev/input") == os.listdir("/sys/class/input") == []
        try:
            os.open("/dev/input/event0", os.O_RDONLY)
        except FileNotFoundError:
            return
        raise AssertionError

    run_client(device, client)


def test_what_the_devices_say_about_themselves(with_input: DrmDevice) -> None:
    def client() -> None:
        key, pointer = node(0), node(1)
        assert struct.unpack("<i", ask(key, 0x01, 4))[0] == 0x010001
        assert struct.unpack("<HHHH", ask(key, 0x02, 8))[0] == 6
        assert ask(key, 0x06, 256) == b"vc4lab keyboard\0"
        assert ask(key, 0x06, 4) == b"vc4l"
        assert ask(pointer, 0x07, 256) == b"vc4lab/input1\0"
        assert number_of(key, evioc(0x08, 16), bytearray(16)) == errno.ENOENT
        assert ask(key, 0x09, 256) == bytes(8)[:4] + bytes(4)
        assert ask(key, 0x20, 8)[0] == 0x03
        assert int.from_bytes(ask(key, 0x20, 8), "little") == 1 << 0 | 1 << 1 | 1 << 17 | 1 << 20
        assert len(ask(key, 0x21, 1000)) == 96
        assert ask(key, 0x21, 96)[30 >> 3] >> (30 & 7) & 1
        assert ask(pointer, 0x22, 8)[:2] == bytes([0b11, 0b1001])
        assert number_of(key, evioc(0x27, 8), bytearray(8)) == errno.EINVAL
        assert struct.unpack("<II", ask(key, 0x03, 8)) == (250, 33)
        assert number_of(pointer, evioc(0x03, 8), bytearray(8)) == errno.ENOSYS
        assert number_of(pointer, evioc(0x40, 24), bytearray(24)) == errno.EINVAL
        assert number_of(key, evioc(0x01, 8), bytearray(8)) == errno.EINVAL
        assert number_of(key, evioc(0x01, 4, WRITE), bytearray(4)) == errno.EINVAL
        assert number_of(key, evioc(0x7F, 4, 0)) == errno.EINVAL
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.ioctl(key, evioc(0x06, 64), ctypes.c_void_p(16)) == -1
        assert ctypes.get_errno() == errno.EFAULT
        assert number_of(sys.stdin.fileno(), evioc(0x01, 4), bytearray(4)) == errno.ENOTTY
        for call, wanted in (
            (lambda: os.lseek(key, 0, 0), errno.ESPIPE),
            (lambda: mmap.mmap(key, 4096), errno.ENODEV),
            (lambda: os.ftruncate(key, 0), errno.EINVAL),
        ):
            try:
                call()
            except OSError as error:
                assert error.errno == wanted, error
            else:
                raise AssertionError

    run(with_input, client)


def test_keys_and_movements_arrive_as_reported(with_input: DrmDevice) -> None:
    def client() -> None:
        pointer, key = node(1), node(0)
        assert have(key, 4) == [(1, 30, 1), (0, 0, 0), (1, 30, 0), (0, 0, 0)]
        assert have(pointer, 3) == [(2, 0, 10), (2, 1, 5), (0, 0, 0)]
        assert have(pointer, 2) == [(2, 0, -3), (0, 0, 0)]
        assert have(pointer, 4) == [(1, 0x110, 1), (0, 0, 0), (1, 0x110, 0), (0, 0, 0)]
        assert have(pointer, 3) == [(2, 8, -2), (2, 11, -240), (0, 0, 0)]
        for fd in (pointer, key):
            try:
                os.read(fd, 24)
            except BlockingIOError:
                continue
            raise AssertionError

    def play(source: Input, opened: Callable[[int], None]) -> None:
        opened(2)
        source.key(30, True)
        source.key(30, True)  # it is down already
        source.key(0x2FF, True)  # the keyboard has no such key
        source.key(30, False)
        source.motion(10, 5)
        source.motion(7, 5)
        source.motion(7.3, 5.2)
        source.button(0x110, True)
        source.button(0x110, False)
        source.wheel(-2)

    run(with_input, client, play)


def test_reading_blocks_and_every_way_of_waiting_sees_the_event(with_input: DrmDevice) -> None:
    def client() -> None:
        fd, other = node(0), node(0, os.O_RDWR)
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        epoll = select.epoll()
        epoll.register(fd, select.EPOLLIN)
        assert poll.poll(0) == [] == epoll.poll(0)
        os.close(node(1))
        first = os.read(other, 24 * 8)  # blocks
        assert [e[2:] for e in EV.iter_unpack(first)] == [(1, 57, 1), (0, 0, 0)]
        assert poll.poll(60_000) == [(fd, select.POLLIN)] == epoll.poll(60)
        assert select.select([fd], [], [], 0)[0] == [fd]
        card = open_card()  # poll with both is answered by the supervisor
        poll.register(card, select.POLLIN)
        assert poll.poll(60_000) == [(fd, select.POLLIN)]
        sent, received = socket.socketpair()
        socket.send_fds(sent, [b"x"], [fd])
        copy = socket.recv_fds(received, 1, 1)[1][0]
        assert have(copy, 2) == [(1, 57, 1), (0, 0, 0)]
        assert poll.poll(0) == []
        assert ask(copy, 0x06, 64) == b"vc4lab keyboard\0"
        os.close(fd)
        if os.fork() == 0:
            assert ask(copy, 0x06, 64) == b"vc4lab keyboard\0"
            os._exit(0)
        assert os.wait()[1] == 0

    def play(source: Input, opened: Callable[[int], None]) -> None:
        opened(3)
        time.sleep(0.2)  # it may wait by now
        source.keyboard.repeat[:] = [0, 0]
        source.key(57, True)

    run(with_input, client, play)


def test_state_clock_and_repeat(with_input: DrmDevice) -> None:
    def client() -> None:
        fd = node(0)
        assert ask(fd, 0x18, 96)[42 >> 3] >> (42 & 7) & 1  # held before it was opened
        fcntl.ioctl(fd, evioc(0xA0, 4, WRITE), struct.pack("<i", 1))
        assert number_of(fd, evioc(0xA0, 4, WRITE), struct.pack("<i", 5)) == errno.EINVAL
        fcntl.ioctl(fd, evioc(0x03, 8, WRITE), struct.pack("<II", 30, 10))
        pointer = node(1)  # play begins
        found = []
        while len(found) < 4:
            assert select.select([fd], [], [], 60)[0]
            found += [e for e in EV.iter_unpack(os.read(fd, 24)) if e[2:4] == (1, 30)]
        assert [e[4] for e in found] == [1, 2, 2, 2]
        times = [e[0] + e[1] / 1e6 for e in found]
        assert abs(times[0] - time.clock_gettime(time.CLOCK_MONOTONIC)) < 60
        assert times == sorted(times)
        assert times[1] - times[0] > 0.025

    assert with_input.input is not None
    with_input.input.key(42, True)

    def play(source: Input, opened: Callable[[int], None]) -> None:
        opened(2)
        source.key(30, True)

    run(with_input, client, play)


def test_masks_grab_and_revoke(with_input: DrmDevice) -> None:
    def client() -> None:
        masked, grabbing, plain = node(0), node(0), node(0)
        wants, place = buffer((1 << 31).to_bytes(96, "little"))
        mask = struct.pack("<IIQ", 1, 96, place)
        fcntl.ioctl(masked, evioc(0x93, 16, WRITE), mask)
        seen, place = buffer(bytes(100))
        fcntl.ioctl(masked, evioc(0x92, 16), struct.pack("<IIQ", 1, 100, place))
        assert seen.raw == wants.raw + bytes(4)
        fcntl.ioctl(plain, evioc(0x92, 16), struct.pack("<IIQ", 1, 100, place))
        assert seen.raw == b"\xff" * 96 + bytes(4)
        none, place = buffer(bytes(4))
        pointer = node(1)
        fcntl.ioctl(pointer, evioc(0x93, 16, WRITE), struct.pack("<IIQ", 0, 4, place))
        # a program may write events: all that listen get them
        writer = node(0, os.O_RDWR)
        fcntl.ioctl(writer, evioc(0x03, 8, WRITE), bytes(8))  # no repeating
        for code in (30, 31):
            os.write(writer, EV.pack(0, 0, 1, code, 1) + EV.pack(0, 0, 0, 0, 0))
        assert have(plain, 4) == [(1, 30, 1), (0, 0, 0), (1, 31, 1), (0, 0, 0)]
        assert have(masked, 2) == [(1, 31, 1), (0, 0, 0)]
        assert len(have(grabbing, 4)) == 4
        assert number_of(plain, evioc(0x90, 4, WRITE), 0) == errno.EINVAL
        assert number_of(grabbing, evioc(0x90, 4, WRITE), 1) == 0
        assert number_of(plain, evioc(0x90, 4, WRITE), 1) == errno.EBUSY
        os.write(grabbing, EV.pack(0, 0, 0x11, 1, 1))
        assert have(grabbing, 2) == [(0x11, 1, 1), (0, 0, 0)]
        assert select.select([plain], [], [], 0.05)[0] == []
        assert ask(plain, 0x19, 8)[0] == 2
        os.close(grabbing)
        until = time.monotonic() + 60
        while (error := number_of(plain, evioc(0x90, 4, WRITE), 1)) == errno.EBUSY:
            assert time.monotonic() < until
        assert error == 0
        assert number_of(plain, evioc(0x91, 4, WRITE), 1) == errno.EINVAL
        assert number_of(plain, evioc(0x91, 4, WRITE), 0) == 0
        assert number_of(plain, evioc(0x01, 4), bytearray(4)) == errno.ENODEV
        assert os.read(plain, 24) == b""
        os.write(writer, EV.pack(0, 0, 1, 31, 0))
        assert have(masked, 2) == [(1, 31, 0), (0, 0, 0)]

    run(with_input, client)


def test_a_program_that_does_not_read_learns_that_events_were_lost(with_input: DrmDevice) -> None:
    def client() -> None:
        fd, writer = node(0), node(0, os.O_RDWR)
        before = -1
        while True:  # until the reader's room is full
            for value in (1, 0) * 20:
                os.write(writer, EV.pack(0, 0, 1, 30, value))
                have(writer, 2)
            waiting = struct.unpack("<i", fcntl.ioctl(fd, 0x541B, bytes(4)))[0]  # FIONREAD
            if waiting == before:
                break
            before = waiting
        found = [e[2:] for e in EV.iter_unpack(os.read(fd, before))]
        assert (0, 3, 0) not in found
        assert len(found) > 100
        more = have(fd, 2)
        assert more[:2] == [(0, 3, 0), (0, 0, 0)]

    run(with_input, client)


def test_programs_that_are_ended_leave_no_open_files(with_input: DrmDevice) -> None:
    def client() -> None:
        revoked, writer = node(0), node(0, os.O_RDWR)
        fcntl.ioctl(revoked, evioc(0x91, 4, WRITE), 0)
        if os.fork() == 0:
            time.sleep(60)
        while True:
            os.write(writer, EV.pack(0, 0, 1, 30, 1) * 60)
            node(1)

    def play(_source: Input, opened: Callable[[int], None]) -> None:
        opened(2)
        time.sleep(0.5)
        with_input.supervisor.stop()

    run(with_input, client, play, expect=None)


def test_wrong_arguments_are_errors(with_input: DrmDevice) -> None:
    """Every request of type 'E', with sizes and pointers that mean nothing."""

    def client() -> None:
        fds = node(0), node(1, os.O_RDWR)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
        held, place = buffer(bytes(1 << 14))
        for nr in range(256):
            if nr == 0x91:
                continue
            for direction in range(4):
                for size in (0, 1, 4, 8, 16, 24, 0x3FFF):
                    for argument in (0, 1, place, (1 << 64) - 1):
                        libc.ioctl(fds[nr & 1], evioc(nr, size, direction), argument)
        assert ask(fds[0], 0x01, 4) == struct.pack("<i", 0x010001)
        for data in (b"", b"x", b"y" * 100, b"\xff" * 24, b"\0" * 100000):
            os.write(fds[1], data)
        time.sleep(0.05)
        assert ask(fds[1], 0x01, 4) == struct.pack("<i", 0x010001)

    run(with_input, client)


def test_an_absolute_pointer_says_places() -> None:
    need_supervisor()

    def client() -> None:
        fd = node(1)
        values = struct.unpack("<6i", ask(fd, 0x40, 24))
        assert values[1:3] == (0, 1279), values
        assert have(fd, 3) == [(3, 0, 100), (3, 1, 50), (0, 0, 0)]
        os.close(node(1))
        assert have(fd, 3) == [(3, 0, 1279), (3, 1, 0), (0, 0, 0)]

    def play(source: Input, opened: Callable[[int], None]) -> None:
        opened(1)
        source.motion(100, 50)
        opened(1)
        source.motion(1e12, -5)

    with DrmDevice(paced=False, threads=1, input=True, pointer="absolute") as device:
        run(device, client, play)
