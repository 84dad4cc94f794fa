# ruff: noqa: B023, F821, F841 - clients are other programs
"""Descriptors of the device opened again, in every spelling: another client's memory is not there.

Programs have the kernel open /proc/self/fd/N, /dev/fd/N and more, whatever the device answers.
"""

import pytest
from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice

HELPERS = '''
def spellings(fd):
    """Ways to open a descriptor again: functions of the flags."""
    pid, tid = os.getpid(), threading.get_native_id()
    folder = os.environ["FOLDER"]
    paths = [
        f"/dev/fd/{fd}", f"//dev/fd/{fd}", f"/dev/./fd/{fd}", f"/dev/dri/../fd/{fd}",
        f"/proc/self/fd/{fd}", f"//proc/self/fd/{fd}", f"/proc//self/./fd/{fd}",
        f"/proc/{pid}/fd/{fd}", f"/proc/thread-self/fd/{fd}", f"/proc/self/task/{tid}/fd/{fd}",
        f"/proc/{pid}/task/{tid}/fd/{fd}", f"/proc/self/root/proc/self/fd/{fd}",
        f"/proc/thread-self/root/dev/fd/{fd}", f"/proc/self/cwd/{fd}",
        f"/./proc/self/fd/../fd/{fd}", f"/dev/stdin/../fd/{fd}",
    ]
    for name, target in (("a", f"/proc/self/fd/{fd}"), ("b", "/proc/self"), ("c", "/dev/fd")):
        link = f"{folder}/{name}"
        if not os.path.lexists(link):
            os.symlink(target, link)
    paths += [f"{folder}/a", f"{folder}/b/fd/{fd}", f"{folder}/c/{fd}"]
    ways = {path: (lambda flags, path=path: os.open(path, flags)) for path in paths}

    def below(place, name):
        def way(flags):
            where = os.open(place, os.O_DIRECTORY | os.O_PATH)
            try:
                return os.open(name, flags, dir_fd=where)
            finally:
                os.close(where)
        return way

    def inside(place, name):
        def way(flags):
            os.chdir(place)
            try:
                return os.open(name, flags)
            finally:
                os.chdir("/")
        return way

    for place, name in (
        ("/proc/self/fd", f"{fd}"), ("/dev/fd", f"{fd}"), ("/proc/self", f"fd/{fd}"),
        ("/proc", f"self/fd/{fd}"), ("/dev", f"fd/{fd}"), ("/proc/self/task", f"{tid}/fd/{fd}"),
        ("/", f"dev/fd/{fd}"), ("/sys", f"../proc/self/fd/{fd}"),
        ("/dev/dri", f"../fd/{fd}"), ("/sys/class/drm", f"../../../proc/self/fd/{fd}"),
    ):
        ways[f"below {place} {name}"] = below(place, name)
        if place not in ("/dev/dri", "/sys/class/drm"):
            ways[f"inside {place} {name}"] = inside(place, name)

    def by_path_only(flags):
        path = os.open(f"/proc/self/fd/{fd}", os.O_PATH)
        try:
            return os.open(f"/proc/self/fd/{path}", flags)
        finally:
            os.close(path)

    ways["O_PATH"] = by_path_only

    def by_handle(flags):
        libc = ctypes.CDLL(None, use_errno=True)
        handle, mount = (ctypes.c_uint * 40)(128), ctypes.c_int()
        if libc.name_to_handle_at(fd, b"", handle, ctypes.byref(mount), 0x1000):
            raise OSError(ctypes.get_errno(), "name_to_handle_at")
        found = libc.open_by_handle_at(fd, handle, flags)
        if found < 0:
            raise OSError(ctypes.get_errno(), "open_by_handle_at")
        return found

    ways["handle"] = by_handle
    files = f"/proc/{pid}/map_files"
    try:
        for name in os.listdir(files):
            if "memfd:vc4lab" in os.readlink(f"{files}/{name}"):
                path = f"{files}/{name}"
                ways[path] = lambda flags, path=path: os.open(path, flags)
    except OSError:
        pass
    return ways

def attack(fd, offset):
    """Read and change what lies at a place of another client's buffer, in all ways."""
    opened = 0
    for name, way in spellings(fd).items():
        for flags in (os.O_RDWR, os.O_RDONLY, os.O_WRONLY):
            try:
                again = way(flags)
            except OSError:
                continue
            opened += 1
            for read in (
                lambda: os.pread(again, 6, offset),
                lambda: os.preadv(again, [held := bytearray(6)], offset) and bytes(held),
                lambda: mmap.mmap(again, 4096, prot=mmap.PROT_READ, offset=offset)[:6],
                lambda: os.lseek(again, offset, os.SEEK_SET) and os.read(again, 6),
            ):
                try:
                    assert read() != b"secret", name
                except (OSError, ValueError):
                    pass
            for write in (
                lambda: os.pwrite(again, b"change", offset),
                lambda: os.write(again, b"change"),
                lambda: mmap.mmap(again, 4096, offset=offset).write(b"change"),
                lambda: os.ftruncate(again, 0),
                lambda: os.truncate(again, 1 << 40),
            ):
                try:
                    write()
                except (OSError, ValueError):
                    pass
            os.close(again)
    return opened
'''


@pytest.mark.parametrize("mapped", ["mapped", "fresh"])
def test_no_spelling_leads_to_another_clients_buffer(
    device: DrmDevice, tmp_path: object, mapped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLDER", str(tmp_path))

    def client() -> None:
        signal.signal(signal.SIGBUS, signal.SIG_DFL)
        mine = open_card("renderD128")
        create_bo(mine, 4096)
        handle = create_bo(mine, 4096)
        create_bo(mine, 4096)
        offset = ioctl(mine, 0x44, "IIQ", handle, 0, 0)[2]
        view = map_bo(mine, handle, 4096)
        view[0:6] = b"secret"
        child = os.fork()
        if child == 0:
            os.close(mine)
            view.close()
            other = open_card("renderD128")
            if sys.argv[1] == "mapped":
                own = map_bo(other, create_bo(other, 8192), 8192)
                own[0:4] = b"mine"
            assert attack(other, offset) >= 10
            shared = export(other, create_bo(other, 4096))
            attack(shared, offset)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert view[0:6] == b"secret"

    run_client(device, client, mapped, helpers=HELPERS)


def test_a_nodes_descriptor_opens_the_node_again(
    device: DrmDevice, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Linux: an open file of its own, in the spellings that programs use."""
    monkeypatch.setenv("FOLDER", str(tmp_path))

    def client() -> None:
        fd = open_card("renderD128")
        map_bo(fd, create_bo(fd, 4096), 4096)
        ways = spellings(fd)
        for name, way in ways.items():
            usual = name.startswith(("/dev/fd", "/proc/self/fd", "//", "below /proc", "inside /"))
            if not usual:
                continue
            again = way(os.O_RDWR)
            assert ioctl(again, 0x47, "IIQ", 0, 0, 0)[2] == 0x02443356, name
            assert refused(again, 0x44, "IIQ", 1, 0, 0) == errno.EINVAL, name  # no handles
            os.close(again)

    run_client(device, client, helpers=HELPERS)


def test_a_forged_position_stands_for_no_open_file(device: DrmDevice) -> None:
    """A file opened again, at the position that stands for another client's open file."""

    def client() -> None:
        mine, other = open_card("renderD128"), open_card("renderD128")
        handle = create_bo(mine, 4096)
        there = imported(other, export(mine, handle))
        map_bo(mine, handle, 4096)[0:6] = b"secret"
        offset = ioctl(other, 0x44, "IIQ", there, 0, 0)[2]
        view = mmap.mmap(other, 4096, offset=offset)  # both are of the same memory now
        assert view[0:6] == b"secret"
        libc = ctypes.CDLL(None, use_errno=True)
        path = os.open(f"/proc/self/fd/{other}", os.O_PATH)
        link = "/tmp/vc4lab-forged-" + str(os.getpid())
        os.symlink(f"/proc/self/fd/{other}", link)
        forged = os.open(link, os.O_RDWR)  # the kernel opens it: the memory's file
        os.unlink(link)
        with open(f"/proc/self/fdinfo/{mine}") as file:
            position = int(file.readline().split()[1])
        assert position >= 1 << 40
        for place in range(position - 4096, position + 4096, 16):
            os.lseek(forged, place, os.SEEK_SET)
            assert refused(forged, 0x44, "IIQ", 1, 0, 0) == errno.ENOTTY, place
        print("ok")

    assert run_client(device, client) == "ok\n"


def test_a_file_of_another_file_system_is_no_descriptor(device: DrmDevice) -> None:
    """With the inode and the position of one of the device's."""

    def client() -> None:
        fd = open_card("renderD128")
        with open(f"/proc/self/fdinfo/{fd}") as file:
            about = dict(line.split(None, 1) for line in file)
        wanted, position = int(about["ino:"]), int(about["pos:"])
        for number in range(4096):
            name = f"/dev/shm/vc4lab-{os.getpid()}-{number}"
            made = os.open(name, os.O_RDWR | os.O_CREAT)
            os.unlink(name)
            if os.fstat(made).st_ino % 4096 == wanted % 4096:
                os.lseek(made, position, os.SEEK_SET)
                lock = struct.pack("hhxxxxqqixxxx", 1, 0, position, 1, 0)
                fcntl.fcntl(made, fcntl.F_OFD_SETLK, lock)
                assert refused(made, 0x47, "IIQ", 0, 0, 0) == errno.ENOTTY
            os.close(made)

    run_client(device, client)


def test_threads_that_map_at_once_get_their_own_buffers(device: DrmDevice) -> None:
    """One descriptor is of one buffer at a time; each mapping must still be of its own."""

    def client() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] + [ctypes.c_int] * 3, ctypes.c_long]
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        fd = open_card("renderD128")
        handles = [create_bo(fd, 4096) for _ in range(64)]
        offsets = [ioctl(fd, 0x44, "IIQ", handle, 0, 0)[2] for handle in handles]
        failures = []

        def work(first):
            for turn in range(60):
                for number in range(first, 64, 4):
                    place = libc.mmap(None, 4096, 3, 1, fd, offsets[number])
                    value = ctypes.c_uint.from_address(place)
                    if turn == 0:
                        value.value = 1000 + number
                    elif value.value != 1000 + number:
                        failures.append((number, value.value))
                    libc.munmap(place, 4096)

        threads = [threading.Thread(target=work, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures[:4]
        print("ok")

    assert run_client(device, client) == "ok\n"


def test_many_mapped_buffers_are_given_back(device: DrmDevice) -> None:
    """Each mapping holds a description; they are not counted one by one at each close."""

    def client() -> None:
        fd = open_card("renderD128")
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] + [ctypes.c_int] * 3, ctypes.c_long]
        libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        for _ in range(3):
            handles = [create_bo(fd, 4096) for _ in range(300)]
            places = []
            for handle in handles:
                offset = ioctl(fd, 0x44, "IIQ", handle, 0, 0)[2]
                places.append(libc.mmap(None, 4096, 3, 1, fd, offset))
                ctypes.memset(places[-1], 7, 4096)
            for place in places:
                libc.munmap(place, 4096)
            for handle in handles:
                ioctl(fd, 0x09, "II", handle, 0, direction=1)

    before = device.memory.clients.used
    run_client(device, client)
    assert device.memory.clients.used == before
    assert not device.memory.files
    assert not device.buffers.retired
    assert not device.supervisor.descriptors._known


def test_programs_of_the_same_user_do_not_get_into_the_device(device: DrmDevice) -> None:
    """Its process has all buffers; only root, and who may trace any process, can look into it."""

    def client() -> None:
        with open(f"/proc/{os.getppid()}/stat") as file:
            device = int(file.read().rpartition(")")[2].split()[1])
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        libc = ctypes.CDLL(None, use_errno=True)

        def refuses(call):
            try:
                return call() is None
            except OSError:
                return True

        names = [f"{kind}/{number}" for kind in ("fd", "fdinfo") for number in range(64)]
        for name in ("mem", "maps", "pagemap", "environ", *names):
            assert refuses(lambda: os.open(f"/proc/{device}/{name}", os.O_RDONLY)), name
        for name in ("fd", "fdinfo", "map_files", "cwd", "root"):
            assert refuses(lambda: os.listdir(f"/proc/{device}/{name}")), name
        pidfd = os.pidfd_open(device)
        assert libc.syscall(438, pidfd, 3, 0) == -1  # pidfd_getfd
        assert libc.ptrace(0x4206, device, 0, 0) == -1  # PTRACE_SEIZE
        print("ok")

    assert run_client(device, client) == "ok\n"


def test_dma_bufs_and_sync_objects_are_not_opened_again(device: DrmDevice) -> None:
    """ENXIO on Linux: their file systems have no way to open them."""

    def client() -> None:
        def opening(path, flags):
            try:
                os.close(os.open(path, flags))
            except OSError as error:
                return error.errno
            return 0

        fd = open_card("renderD128")
        shared = export(fd, create_bo(fd, 4096))
        sync = ioctl(fd, 0xC1, "IIiI", ioctl(fd, 0xBF, "II", 0, 0)[0], 0, 0, 0)[2]
        for number in (shared, sync):
            for path in (
                *(f"/proc/self/fd/{number}", f"/dev/fd/{number}", f"/proc/{os.getpid()}/fd/{number}"),
                *(f"/proc/self/root/proc/self/fd/{number}", f"/proc/thread-self/fd/{number}"),
            ):
                for flags in (os.O_RDONLY, os.O_RDWR, os.O_RDWR | os.O_CREAT):
                    assert opening(path, flags) == errno.ENXIO, path
            os.close(os.open(f"/proc/self/fd/{number}", os.O_PATH))
        again = os.open(f"/proc/self/root/proc/self/fd/{fd}", os.O_RDWR)
        assert ioctl(again, 0x47, "IIQ", 0, 0, 0)[2] == 0x02443356

    run_client(device, client)


def test_memory_that_the_program_serves_does_not_stop_the_device(device: DrmDevice) -> None:
    """A read of such memory waits until the program serves it: with userfaultfd, of faults in the
    kernel only where it is asked for. Its EFAULT is the kernel's for faults that it may not serve."""

    def client() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
        call = {"x86_64": 323, "aarch64": 282}[os.uname().machine]
        fd = open_card("renderD128")
        assert libc.syscall(call, os.O_CLOEXEC) == -1
        assert ctypes.get_errno() == errno.EPERM
        faults = libc.syscall(call, os.O_CLOEXEC | 1)
        if faults < 0:
            print("not here")
            return
        if os.path.exists("/dev/userfaultfd") and os.geteuid() == 0:
            other = os.open("/dev/userfaultfd", os.O_RDWR)
            assert libc.ioctl(other, 0xAA00, None) == -1
            assert ctypes.get_errno() == errno.EPERM
        fcntl.ioctl(faults, 0xC018AA3F, struct.pack("<QQQ", 0xAA, 0, 0))
        place = libc.mmap(None, 4096, 3, 0x22, -1, 0)
        fcntl.ioctl(faults, 0xC020AA00, struct.pack("<QQQQ", place, 4096, 1, 0))
        assert libc.ioctl(fd, number(0x47, 16), place) == -1
        assert ctypes.get_errno() == errno.EFAULT
        assert ioctl(fd, 0x47, "IIQ", 0, 0, 0)[2] == 0x02443356
        print("refused")

    assert run_client(device, client) in ("refused\n", "not here\n")
