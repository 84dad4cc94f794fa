# ruff: noqa: B023, F821 - clients are other programs
"""Paths that lead out of the nodes: the kernel opens what is there, with the program's own rights.

The device runs as the user of this test; programs may be others, or see another root.
"""

import os
import stat
from pathlib import Path

import pytest
from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

HELPERS = '''
NOBODY = 65534

def ways_out(path):
    """Descriptors of the nodes' directories, and the path from there."""
    rest = path.lstrip("/")
    return [
        (place, "../" * up + rest)
        for place, up in (
            ("/sys/class/drm", 3), ("/sys/class", 2), ("/dev/dri", 2), ("/sys/dev/char", 3),
            ("/sys/class/drm/card0/device", 5), ("/sys/class/drm", 9),
        )
    ]

def outcome(call):
    """The errno, 0 if it is fine."""
    try:
        found = call()
    except OSError as error:
        return error.errno
    if type(found) is int and found > 2:
        os.close(found)
    return 0

def calls(name, where):
    """What programs ask about a path; each result is compared with the direct one's."""
    return {
        "open": outcome(lambda: os.open(name, os.O_RDONLY, dir_fd=where)),
        "write": outcome(lambda: os.open(name, os.O_RDWR, dir_fd=where)),
        "create": outcome(lambda: os.open(name + ".new", os.O_RDWR | os.O_CREAT, dir_fd=where)),
        "path": outcome(lambda: os.open(name, os.O_PATH, dir_fd=where)),
        "stat": outcome(lambda: os.stat(name, dir_fd=where)),
        "lstat": outcome(lambda: os.lstat(name, dir_fd=where)),
        "readlink": outcome(lambda: os.readlink(name + ".link", dir_fd=where)),
        "access": [os.access(name, mode, dir_fd=where) for mode in (0, 1, 2, 4)],
        "rename": outcome(lambda: os.rename(name, name + "2", src_dir_fd=where, dst_dir_fd=where)),
        "unlink": outcome(lambda: os.unlink(name + ".link", dir_fd=where)),
        "mkdir": outcome(lambda: os.mkdir(name + ".folder", dir_fd=where)),
        "chmod": outcome(lambda: os.chmod(name, 0o777, dir_fd=where)),
        "chown": outcome(lambda: os.chown(name, NOBODY, NOBODY, dir_fd=where)),
        "link": outcome(lambda: os.link(name, name + "3", src_dir_fd=where, dst_dir_fd=where)),
        "list": outcome(lambda: os.open(os.path.dirname(name), os.O_DIRECTORY, dir_fd=where)),
    }
'''


def private(folder: Path) -> Path:
    """A file that only its owner may look at, below a folder that only its owner may enter."""
    inner = folder / "private"
    inner.mkdir(mode=0o700)
    file = inner / "secret"
    file.write_text("secret")
    file.chmod(0o600)
    (inner / "secret.link").symlink_to("secret")
    for above in (folder, *folder.parents[:-1]):
        with_rights = stat.S_IMODE(above.stat().st_mode)
        if above.owner() == folder.owner() and "pytest" in str(above):
            above.chmod(with_rights | 0o755)
    return file


@as_root
def test_a_program_that_became_another_user_has_that_users_rights(device: DrmDevice, tmp_path: Path) -> None:
    def client() -> None:
        path = sys.argv[1]
        known = {place: os.open(place, os.O_DIRECTORY) for place, _ in ways_out(path)}
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        direct = calls(path, None)
        assert direct["open"] == direct["stat"] == errno.EACCES
        assert direct["access"] == [False] * 4
        for place, name in ways_out(path):
            for where in (known[place], os.open(place, os.O_DIRECTORY)):
                found = calls(name, where)
                assert found["open"] in (errno.EACCES, errno.ENOENT), (place, found)
                assert set(found["access"]) == {False}, (place, found)
                for call, result in found.items():
                    assert call == "access" or result, (place, name, call)
                os.fchdir(where)
                assert calls(name, None)["open"] in (errno.EACCES, errno.ENOENT), place
                os.chdir("/")
                by_link = f"/proc/self/fd/{where}/{name}"
                assert outcome(lambda: os.open(by_link, os.O_RDONLY)), by_link
        # what all users may read is still found that way
        where = known["/sys/class/drm"]
        with open(os.open("../../../etc/passwd", os.O_RDONLY, dir_fd=where)) as file:
            assert "root" in file.read()
        assert os.stat("../../../etc/passwd", dir_fd=where).st_size
        assert os.open("../../class/drm/card0/dev", os.O_RDONLY, dir_fd=where)
        print(open_card("renderD128") >= 900)

    file = private(tmp_path)
    assert run_client(device, client, str(file), helpers=HELPERS) == "True\n"
    assert file.read_text() == "secret"
    assert sorted(os.listdir(file.parent)) == ["secret", "secret.link"]


@as_root
def test_the_owner_gets_there_as_on_linux(device: DrmDevice, tmp_path: Path) -> None:
    def client() -> None:
        path = sys.argv[1]
        for place, name in ways_out(path):
            if place.endswith("device") or name.startswith("../" * 8):
                continue  # on disk these lie deeper than in sysfs
            where = os.open(place, os.O_DIRECTORY)
            with open(os.open(name, os.O_RDONLY, dir_fd=where)) as file:
                assert file.read() == "secret", place
            assert os.access(name, os.R_OK, dir_fd=where)
            with open(os.open(name, os.O_WRONLY | os.O_TRUNC, dir_fd=where), "w") as file:
                file.write("secret")

    run_client(device, client, str(private(tmp_path)), helpers=HELPERS)


@as_root
@pytest.mark.parametrize("user", ["root", "nobody"])
def test_nothing_leads_out_of_another_root(device: DrmDevice, tmp_path: Path, user: str) -> None:
    """The nodes are there, and above them is what the program's own root has."""

    def client() -> None:
        path, jail, user = sys.argv[1:]
        os.chroot(jail)
        os.chdir("/")
        if user == "nobody":
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        assert os.listdir("/") == ["etc"]
        assert open_card("renderD128") >= 900
        with open("/sys/class/drm/card0/dev") as file:
            assert file.read() == "226:0\n"
        seen = 0
        for place in ("/sys/class/drm", "/sys/class", "/dev/dri", "/sys/dev/char"):
            try:
                where = os.open(place, os.O_DIRECTORY)
            except PermissionError:  # where there can be no mount for them
                continue
            seen += 1
            assert os.listdir(where)
            for up in range(12):
                above = "../" * up
                for name in (path, "/etc/passwd", "/proc/1/root/etc/passwd", "/tmp", "/root"):
                    climb = above + name.lstrip("/")
                    for flags in (os.O_RDONLY, os.O_RDWR, os.O_PATH, os.O_DIRECTORY):
                        assert outcome(lambda: os.open(climb, flags, dir_fd=where)) == errno.ENOENT
                    assert outcome(lambda: os.stat(climb, dir_fd=where)) == errno.ENOENT
                    assert not os.access(climb, 0, dir_fd=where)
                if up >= 3:
                    with open(os.open(above + "etc/own", os.O_RDONLY, dir_fd=where)) as file:
                        assert file.read() == "own"
            os.fchdir(where)
            assert outcome(lambda: os.open("../" * 9 + path[1:], os.O_RDONLY)) == errno.ENOENT
            os.chdir("/")
        for name in (f"/sys/class/drm/../../..{path}", f"/dev/dri/../..{path}", path):
            assert set(calls(name, None)["access"]) == {False}
            assert calls(name, None)["open"] == errno.ENOENT
        print(seen in (0, 4))

    jail = tmp_path / "jail"
    (jail / "etc").mkdir(parents=True)
    (jail / "etc/own").write_text("own")
    file = private(tmp_path)
    shown = run_client(device, client, str(file), str(jail), user, helpers=HELPERS)
    assert shown == "True\n"
    assert os.listdir(jail) == ["etc"]


@as_root
def test_programs_with_other_mounts_stay_among_them(device: DrmDevice, tmp_path: Path) -> None:
    def client() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(0x20000) or libc.mount(b"none", b"/", None, 0x44000, None):
            print("ok")  # a sandbox that forbids it
            return
        for over in (b"/dev", sys.argv[1].encode()):
            assert not libc.mount(b"none", over, b"tmpfs", 0, None)
        where = os.open("/sys/class/drm", os.O_DIRECTORY)
        assert "card0" in os.listdir(where)
        assert sorted(os.listdir("/dev/dri")) == ["card0", "renderD128"]
        create_bo(open_card("renderD128"), 4096)
        create_bo(os.open("renderD128", os.O_RDWR, dir_fd=os.open("/dev/dri", os.O_DIRECTORY)), 4)
        with open(os.open("card0/dev", os.O_RDONLY, dir_fd=where)) as file:
            assert file.read() == "226:0\n"
        hidden = sys.argv[1].lstrip("/") + "/secret"
        for up in range(12):
            climb = "../" * up + hidden
            assert outcome(lambda: os.open(climb, os.O_RDONLY, dir_fd=where)) == errno.ENOENT
        print("ok")

    (tmp_path / "secret").write_text("secret")
    assert run_client(device, client, str(tmp_path), helpers=HELPERS) == "ok\n"


def test_pipes_do_not_stop_the_device(device: DrmDevice, tmp_path: Path) -> None:
    """A program that waits for a pipe waits alone, in whatever way it came there."""

    def client() -> None:
        path = sys.argv[1]
        fd = open_card("renderD128")
        for place, name in ways_out(path):
            where = os.open(place, os.O_DIRECTORY)
            for flags in (os.O_RDONLY, os.O_WRONLY):
                thread = threading.Thread(
                    target=lambda: outcome(lambda: os.open(name, flags, dir_fd=where)), daemon=True
                )
                thread.start()
                for _ in range(20):
                    create_bo(fd, 4096)
                os.stat(name, dir_fd=where) if not place.endswith("device") else None
        print("alive")
        sys.stdout.flush()
        os._exit(0)

    os.mkfifo(tmp_path / "pipe")
    assert run_client(device, client, str(tmp_path / "pipe"), helpers=HELPERS) == "alive\n"


def test_what_a_program_puts_in_the_place_of_nodes(device: DrmDevice, tmp_path: Path) -> None:
    """Pipes and links among the nodes on disk, which a program of the same user can reach."""

    def client() -> None:
        secret, root = sys.argv[1:]
        fd = open_card("renderD128")
        for kind in ("pipe", "link", "folder link"):
            for path in (
                "/sys/class/drm/card0/dev",
                "/sys/class/drm/card0/card0-HDMI-A-1/status",
                "/run/udev/control",
                "/dev/dri/card0",
            ):
                real = root + os.path.realpath(path)
                os.rename(real, real + ".kept")
                if kind == "pipe":
                    os.mkfifo(real)
                else:
                    os.symlink(secret if kind == "link" else os.path.dirname(secret), real)
                for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_PATH):
                    outcome(lambda: os.open(path, flags))
                    try:
                        found = os.open(path, flags)
                    except OSError:
                        continue
                    if flags == os.O_RDONLY and path != "/dev/dri/card0":
                        assert os.read(found, 6) != b"secret"
                    os.close(found)
                outcome(lambda: os.stat(path))
                os.unlink(real)
                os.rename(real + ".kept", real)
                create_bo(fd, 4096)
        print("alive")

    (tmp_path / "secret").write_text("secret")
    code = f"{HELPERS}\n"
    tree = device.supervisor.tree
    write = tree.write

    def note() -> None:
        write()
        Path(tmp_path, "root").write_text(tree.root)

    tree.write = note  # type: ignore[method-assign]
    script = "import os, sys\nsys.argv[2] = open(sys.argv[2]).read()\n"
    shown = run_client(
        device, client, str(tmp_path / "secret"), str(tmp_path / "root"), helpers=script + code
    )
    assert shown == "alive\n"
    device.disconnect()


@as_root
def test_rights_in_a_user_namespace_are_none_on_the_device(device: DrmDevice) -> None:
    """There every program has all capabilities, of what belongs to that namespace."""

    def client() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        card = open_card()
        handle, pitch = dumb(card, 64, 64)[:2]
        fb = add_fb(card, 64, 64, pitch, handle)
        shared = open_card()
        os.chmod("/dev/dri/card0", 0o600)
        os.chmod("/dev/dri/renderD128", 0o666)
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        for inside in (False, True):
            if inside:
                if libc.unshare(0x10000000):  # CLONE_NEWUSER
                    print("no namespaces")
                    return
                with open("/proc/self/status") as status:
                    assert "CapEff:\t0000000000000000" not in status.read()
            assert outcome(lambda: open_card()) == errno.EACCES
            assert outcome(lambda: os.chmod("/dev/dri/card0", 0o666)) == errno.EPERM
            assert outcome(lambda: os.chown("/dev/dri/card0", NOBODY, NOBODY)) == errno.EPERM
            assert not os.access("/dev/dri/card0", os.R_OK)
            os.close(open_card("renderD128"))
            found = ioctl(shared, 0xAD, "IIIIIII", fb, *[0] * 6)
            assert found[6] == 0, "only the display's owner gets a handle"
        print("right")

    assert run_client(device, client, helpers=HELPERS) in ("right\n", "no namespaces\n")
