"""A Debian with systemd on a card: its files, owners and image; booted where it has been made."""

import io
import shutil
import subprocess
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.drm.setup.places import Brought, SetupFailed, find_brought
from vc4lab.linux import full_root
from vc4lab.linux.boots import LinuxBoot, LinuxPlan
from vc4lab.linux.full_root import APPEND, full_image, owner_commands
from vc4lab.linux.full_tree import FullTree, Owner
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.machine import Machine, Stop
from vc4lab.soc.options import MachineOptions

needs_dpkg = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="there is no dpkg-deb")
FIELDS = "Package: thing\nVersion: 1\nArchitecture: arm64\nMaintainer: x\nDescription: x\n"
Row = tuple[str, int, int, bytes, str]
"""Name, mode, group, kind of tarfile's, content or what a link names."""


def archive(rows: list[Row]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as file:
        for name, mode, group, kind, text in rows:
            member = tarfile.TarInfo(name)
            member.mode, member.gid, member.type = mode, group, kind
            if kind == tarfile.REGTYPE:
                member.size = len(text)
            else:
                member.linkname = text
            file.addfile(member, io.BytesIO(text.encode()))
    return data.getvalue()


def package(folder: Path, rows: list[Row], fields: str = FIELDS) -> Path:
    """A package with these files."""
    control = archive([("./control", 0o644, 0, tarfile.REGTYPE, fields)])
    path = folder / "thing_1_arm64.deb"
    content = b"!<arch>\n"
    parts = ("debian-binary", b"2.0\n"), ("control.tar", control), ("data.tar", archive(rows))
    for name, data in parts:
        content += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
        content += data + b"\n" * (len(data) % 2)
    path.write_bytes(content)
    return path


PLAIN: list[Row] = [
    ("./", 0o755, 0, tarfile.DIRTYPE, ""),
    ("./bin/su", 0o4755, 0, tarfile.REGTYPE, "program"),
    ("./sbin/check", 0o2755, 42, tarfile.REGTYPE, "check"),
    ("./bin/same", 0o4755, 0, tarfile.LNKTYPE, "./bin/su"),
    ("./etc/link", 0o777, 0, tarfile.SYMTYPE, "/bin/su"),
    ("./tmp/", 0o1777, 0, tarfile.DIRTYPE, ""),
    ("./usr/share/doc/thing", 0o644, 0, tarfile.REGTYPE, "text"),
]


@needs_dpkg
def test_a_package_is_unpacked_as_a_system_has_it(tmp_path: Path) -> None:
    tree = FullTree(tmp_path / "tree", "arm64")
    tree.unpack(package(tmp_path, PLAIN, FIELDS.replace("Arch", "Multi-Arch: same\nArch")))
    root = tree.folder
    assert (root / "usr/bin/su").read_text() == "program"
    assert (root / "bin/same").samefile(root / "usr/bin/su")
    assert (root / "etc/link").readlink() == Path("/bin/su")
    assert not (root / "usr/share/doc/thing").exists()
    assert tree.owners["usr/bin/su"] == Owner(0, 0, 0o4755)
    assert tree.owners["usr/sbin/check"] == Owner(0, 42, 0o2755)
    assert tree.owners["tmp"].mode == 0o1777
    listed = (root / "var/lib/dpkg/info/thing:arm64.list").read_text().split()
    assert listed[:3] == ["/.", "/bin/su", "/sbin/check"]


@needs_dpkg
@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([("./../out", 0o644, 0, tarfile.REGTYPE, "x")], "cannot be a path"),
        ([('./a"b', 0o644, 0, tarfile.REGTYPE, "x")], "cannot be a path"),
        (
            [("./away", 0o777, 0, tarfile.SYMTYPE, "/tmp"), ("./away/file", 0o644, 0, tarfile.REGTYPE, "x")],
            "leads out of the root",
        ),
        ([("./pipe", 0o644, 0, tarfile.FIFOTYPE, "")], "neither a file, a folder nor a link"),
    ],
)
def test_what_cannot_be_in_a_root(tmp_path: Path, rows: list[Row], text: str) -> None:
    tree = FullTree(tmp_path / "tree", "arm64")
    with pytest.raises(SetupFailed, match=text):
        tree.unpack(package(tmp_path, rows))


@needs_dpkg
def test_damaged_packages_end_in_a_sentence(tmp_path: Path) -> None:
    path = package(tmp_path, PLAIN)
    whole = path.read_bytes()
    for size in range(0, len(whole), 1500):
        path.write_bytes(whole[:size])
        tree = FullTree(tmp_path / f"tree{size}", "arm64")
        with pytest.raises(SetupFailed):
            tree.unpack(path)


def test_without_a_table_of_users(tmp_path: Path) -> None:
    with pytest.raises(SetupFailed, match="no table of users"):
        FullTree(tmp_path / "tree", "arm64").configure()


@needs_dpkg
def test_the_image_has_owners_and_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        make, read = full_root._tool("mke2fs"), full_root._tool("debugfs")
    except SetupFailed:
        pytest.skip("there is no e2fsprogs")
    monkeypatch.setattr(full_root, "IMAGE_SIZE", 16 << 20)
    users = "usr/share/base-passwd"
    rows: list[Row] = [
        *PLAIN,
        (f"./{users}/passwd.master", 0o644, 0, tarfile.REGTYPE, "root:*:0:0::/root:/bin/bash\n"),
        (f"./{users}/group.master", 0o644, 0, tarfile.REGTYPE, "root:*:0:\n"),
    ]
    tree = FullTree(tmp_path / "tree", "arm64")
    tree.unpack(package(tmp_path, rows))
    tree.configure()
    assert any("/usr/sbin/check" in line for line in owner_commands(tree))
    image = tmp_path / "debian.img"
    full_root._write_image(tree, image, make, read)

    def stat(path: str) -> list[str]:
        command = [read, "-R", f'stat "{path}"', str(image)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    for path, mode, group in (
        ("/usr/bin/su", "04755", "0"),
        ("/usr/sbin/check", "02755", "42"),
        ("/etc/shadow", "0640", "42"),
        ("/tmp", "01777", "0"),
        ("/etc/hostname", "0644", "0"),
    ):
        words = stat(path)
        assert words[words.index("Mode:") + 1] == mode, path
        assert words[words.index("User:") + 1] == "0", path
        assert words[words.index("Group:") + 1] == group, path
    with pytest.raises(SetupFailed, match="debugfs: "):
        full_root._change([read, "-w", "-R", "set_inode_field /none uid 0", str(image)])


def test_what_a_run_left_that_was_killed_at_its_end_goes(tmp_path: Path) -> None:
    brought = Brought("bookworm", tmp_path)
    image = full_image(brought)
    package = image.parent / "apt/archives/thing_1_arm64.deb"
    inside = image.parent / "tree/usr/bin/su"
    for file in (image, package, inside):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")
    said: list[str] = []
    display = SimpleNamespace(say=said.append, show=said.append)
    full_root.set_up_full(brought, display)
    assert said == [f"already complete: {image} (remove it to start afresh)"]
    assert image.is_file()
    assert not package.exists()
    assert not inside.parents[2].exists()


def test_what_the_command_refuses(tmp_path: Path) -> None:
    card = tmp_path / "card"
    card.mkdir()
    done = CliRunner().invoke(app, ["linux", "--root", "full", "--card", str(card)])
    assert done.exit_code == ExitCode.BAD_INPUT
    assert "it is a card itself" in done.stderr
    done = CliRunner().invoke(app, ["linux", "--root", "small"])
    assert done.exit_code == ExitCode.BAD_INPUT
    assert "--root small" in done.stderr


def test_it_boots_to_its_login() -> None:
    brought = find_brought()
    if brought is None or not full_image(brought).is_file():
        pytest.skip("vc4lab linux --setup --root full has not been run")
    boot = LinuxBoot(brought, LinuxPlan(append=APPEND))
    boot.make_root()
    output = bytearray()
    serial = SerialPort(output.extend)
    serial.attended = True
    options = MachineOptions("pi3", card=str(full_image(brought)), extras=boot.extras)
    machine = Machine(boot.kernel.image, serial=serial, options=options)

    def wait(text: bytes, limit: float) -> None:
        while text not in output:
            assert machine.run(seconds=0.05).reason is Stop.SECONDS, output[-2000:]
            assert machine.seconds < limit, output[-2000:]
        output.clear()

    wait(b"pi login: ", 60)
    serial.type("root\n")
    wait(b":~# ", 90)
    serial.type("systemctl is-system-running --wait; stat -c %a:%G /usr/sbin/unix_chkpwd\n")
    wait(b"running\r\n2755:shadow", 120)
