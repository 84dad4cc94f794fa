"""--setup with pretended package tools: what it brings, going on, and what it says of errors."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from tests.drm.setup.conftest import World

from vc4lab.cli.drm_setup import describe
from vc4lab.drm.setup import packages, steps
from vc4lab.drm.setup.packages import PackageClient, host_mirrors
from vc4lab.drm.setup.places import DRIVER, MULTIARCH, SetupFailed, find_brought
from vc4lab.drm.setup.preload import NAME, preload_object
from vc4lab.drm.setup.programs import find_program, start
from vc4lab.drm.setup.steps import set_up
from vc4lab.drm.setup.tools import tool_failed


class Lines:
    """A display that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.shown: list[str] = []

    def say(self, line: str) -> None:
        self.said.append(line)

    def show(self, text: str) -> None:
        self.shown.append(text)


def bring(world: World, *extra: str) -> Lines:
    lines = Lines()
    set_up(world.brought, extra, lines)
    return lines


def failure(world: World, *extra: str) -> SetupFailed:
    with pytest.raises(SetupFailed) as caught:
        bring(world, *extra)
    assert "\n" not in str(caught.value)
    return caught.value


def test_all_is_brought_and_then_there(world: World) -> None:
    lines = bring(world)
    brought = world.brought
    assert brought.is_complete
    assert find_brought() == brought
    assert f"10 packages, {10 * 100 / 1e6:.0f} MB" in lines.said[1]
    assert any("download" in text for text in lines.shown)
    tree = brought.tree
    assert (tree / MULTIARCH / NAME).read_bytes() == preload_object()
    assert (tree / "etc/ld.so.preload").read_text() == f"/{MULTIARCH}/{NAME}\n"
    assert not (tree / "lib").exists(), "below usr"
    assert (tree / MULTIARCH / "kmscube.so").stat().st_mode & 0o7777 == 0o755
    assert (tree / MULTIARCH / "link").is_file()
    assert "/" not in os.readlink(tree / MULTIARCH / "link")
    assert not (tree / "usr/share/doc").exists()
    assert not list((brought.folder / "apt/archives").glob("*.deb"))
    assert brought.qemu.read_bytes() == b"#!/bin/sh\n"
    assert sorted(p.name for p in (brought.folder / "programs").iterdir()) == sorted(packages.PROGRAMS)
    world.log()
    assert "already complete" in bring(world).said[0]
    assert world.log() == [], "nothing is asked any more, so no network is needed"


def test_an_interrupted_download_goes_on(world: World) -> None:
    stop = "Err: http://mirror kmscube\nE: Failed to fetch x  Could not resolve 'deb.debian.org'"
    world.plan(stop_at="kmscube_1_arm64.deb", stop_text=stop)
    error = failure(world)
    assert str(error).startswith("no connection: ")
    assert not error.output
    assert not world.brought.is_complete
    first = [line for line in world.log() if line.startswith("got")]
    assert len(first) == 5
    world.plan()
    lines = bring(world)
    assert lines.said[0].startswith("resuming")
    assert "of which" in lines.said[2]
    got = [line for line in world.log() if line.startswith("got")]
    assert len(got) == 5 + 1, "the other packages and qemu"
    assert not set(first) & set(got)
    assert world.brought.is_complete


def test_a_damaged_download_is_got_again(world: World) -> None:
    """apt-get takes a file of the right size as it is; a wrong byte was there until the end."""
    world.plan(fail_at="kmscube", fail_text="dpkg-deb: error: stopped")
    failure(world)
    archives = world.brought.folder / "apt/archives"
    kept = sorted(file.name for file in archives.glob("*.deb"))
    assert kept[:2] == ["drm-info_1_arm64.deb", "glmark2-es2-drm_1_arm64.deb"]
    (archives / kept[0]).write_bytes(b"x" * 99 + b"y")
    (archives / kept[1]).write_bytes(b"x" * 99)
    world.log()
    world.plan()
    lines = bring(world)
    assert lines.said[2:4] == [f"{name} was damaged: it is downloaded again" for name in kept[1::-1]]
    got = [line.removeprefix("got ") for line in world.log() if line.startswith("got")]
    assert sorted(got) == [*kept[:2], "qemu-user-static_1_arm64.deb"]
    assert world.brought.is_complete


def test_interrupted_while_unpacking_goes_on(world: World) -> None:
    world.plan(fail_at="kmscube", fail_text="dpkg-deb: error: tar: No space left on device")
    error = failure(world)
    assert error.output
    assert str(error).startswith("no room: ")
    unpacked = world.brought.names()
    assert "libgl1-mesa-dri" in unpacked
    assert "kmscube" not in unpacked
    assert not (world.brought.tree / "half").exists()
    world.log()
    world.plan()
    bring(world)
    assert [line for line in world.log() if line.startswith("got")] == ["got qemu-user-static_1_arm64.deb"]
    assert "kmscube" in world.brought.names()


def test_further_packages(world: World) -> None:
    bring(world)
    known = [*packages.LIBRARIES, *packages.PROGRAMS, "qemu-user-static", "piglit"]
    world.log()
    world.plan(known=known, extra=["piglit"])
    (world.brought.folder / "apt/archives/left-over_1_arm64.deb").write_bytes(b"")
    bring(world, "piglit")
    assert not list((world.brought.folder / "apt/archives").glob("*.deb"))
    assert [line for line in world.log() if line.startswith("got")] == ["got piglit_1_arm64.deb"]
    assert find_program(world.brought, "piglit") == world.brought.tree / "usr/bin/piglit"
    assert "Unable to locate" in str(failure(world, "no-such-package"))
    world.plan(known=known, virtual=["mail-transport-agent"])
    text = str(failure(world, "mail-transport-agent"))
    assert (
        text
        == "mail-transport-agent is a virtual package; name one that provides it: exim4-daemon-light, postfix"
    )
    assert world.brought.is_complete, "what is there stays usable"
    for name in ("", "-o", "a b", "../x", "A"):
        assert "not a package name" in str(failure(world, name))


def test_packages_are_for_the_trees_architecture(world: World) -> None:
    """One that is there for the host's only is not found; one for all is."""
    known = [*packages.LIBRARIES, *packages.PROGRAMS, "qemu-user-static", "fonts", "cpuid"]
    kinds = {"fonts": "all", "cpuid": "amd64"}
    world.plan(known=known, extra=["fonts", "cpuid"], architectures=kinds)
    bring(world, "fonts")
    installs = [line for line in world.log() if line.startswith("install")]
    names = [name for line in installs for name in line.split()[1:] if name[0] != "-"]
    assert {name.partition(":")[2] for name in names} == {"arm64", "amd64"}
    assert {name for name in names if name.endswith(":amd64")} == {"qemu-user-static:amd64"}
    assert "cpuid_1_arm64.deb is not for arm64" in str(failure(world, "cpuid"))
    assert "cpuid" not in world.brought.names()
    assert not (world.brought.tree / "usr/bin/cpuid").exists()


def broken_by(world: World, name: str, fields: str) -> None:
    """A package is unpacked that should not be."""
    world.brought.note(f"{name}_1_x.deb", fields)
    (world.brought.tree / "usr/bin").mkdir(parents=True, exist_ok=True)
    (world.brought.tree / "usr/bin" / name).write_text("foreign")


def test_a_tree_with_another_architectures_packages_is_made_again(world: World) -> None:
    bring(world)
    assert not world.brought.fault()
    broken_by(world, "libc6", "Package: libc6\nVersion: 1\nArchitecture: amd64")
    broken_by(world, "zlib", "Package: zlib\nVersion: 1\nArchitecture: amd64")
    shown = describe(None)
    assert len(shown) == 1
    assert "not for arm64 (libc6 and 1 more): vc4lab drm --setup makes it again" in shown[0]
    lines = bring(world)
    assert "(libc6 and 1 more); it is made again, with the packages that" in lines.said[0]
    assert world.brought.is_complete
    assert not world.brought.fault()
    assert not {"libc6", "zlib"} & world.brought.names()
    assert not (world.brought.tree / "usr/bin/libc6").exists()
    assert (world.brought.tree / "usr/bin/kmscube").exists()
    assert "made again" not in "".join(describe(None))
    assert "already complete" in bring(world).said[0]


def test_a_tree_whose_set_up_ended_in_between_is_made_again(world: World) -> None:
    bring(world)
    broken_by(world, "cpuid", "Package: cpuid\nVersion: 1\nArchitecture: amd64")
    world.brought.incomplete()
    assert "makes it again" in describe(None)[0]
    assert "made again" in bring(world).said[0]
    assert not world.brought.fault()


def test_packages_that_do_not_fit_together_are_brought_again(world: World) -> None:
    """Whatever the reason is: apt-get would say so at each later call."""
    bring(world)
    broken_by(world, "odd", "Package: odd\nVersion: 1\nArchitecture: arm64\nDepends: nothing")
    known = [*packages.LIBRARIES, *packages.PROGRAMS, "qemu-user-static", "piglit"]
    world.plan(known=known, broken="odd")
    lines = bring(world, "piglit")
    assert any("do not fit together; it is made again" in line for line in lines.said)
    assert "odd" not in world.brought.names()
    assert {"piglit", "kmscube"} <= world.brought.names()
    assert world.brought.is_complete


def test_a_tree_without_its_driver_is_made_again(world: World) -> None:
    bring(world)
    (world.brought.tree / DRIVER).unlink()
    assert "vc4_dri.so is missing" in describe(None)[0]
    bring(world)
    assert (world.brought.tree / DRIVER).is_file()


@pytest.mark.parametrize(
    ("said", "start", "output"),
    [
        ("W: GPG error: http://m InRelease: NO_PUBKEY 12\nE: not signed.", "refused", False),
        ("E: The repository 'http://m bookworm Release' is not signed.", "refused", False),
        ("E: Failed to fetch http://m/x  Hash Sum mismatch", "refused", False),
        ("E: Release file for http://m is expired (invalid since 3d).", "refused", False),
        ("W: Failed to fetch http://m  Temporary failure resolving 'm'", "no connection", False),
        ("E: Could not connect to 127.0.0.1:9 - connect (111)", "no connection", False),
        ("E: You don't have enough free space in /c/archives/.", "no room", True),
        ("E: Write error - write (28: No space left on device)", "no room", True),
        ("E: Something else", "apt-get: Something else", False),
        ("", "apt-get: failed without a message", False),
    ],
)  # fmt: skip
def test_what_apt_says_becomes_a_sentence(said: str, start: str, output: bool) -> None:
    error = tool_failed("apt-get", said)
    assert str(error).startswith(start)
    assert error.output == output


def test_lists_that_cannot_be_had(world: World) -> None:
    world.plan(update="E: The repository 'http://m bookworm InRelease' is not signed.")
    assert str(failure(world)).startswith("refused")
    assert not any(line.startswith("install") for line in world.log())


def test_a_full_disk_is_seen_before(world: World) -> None:
    world.plan(unpacked="900,000 GB")
    error = failure(world)
    assert error.output
    assert "are needed" in str(error)
    assert not any(line.startswith("got") for line in world.log())


def test_a_folder_that_cannot_be_made(world: World) -> None:
    world.brought.folder.parent.parent.write_text("a file")
    assert failure(world).output


def test_only_one_at_a_time(world: World) -> None:
    with world.brought.locked():
        assert "another" in str(failure(world))


def test_hosts_where_it_is_not_possible(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(world.folder / "none"))
    text = str(failure(world))
    assert text.startswith("apt-get and dpkg-deb not found")
    assert "--driver" in text
    monkeypatch.setattr(steps.os, "uname", lambda: os.uname_result(["", "", "", "", "aarch64"]))
    assert "own Mesa" in str(failure(world))


def test_without_the_keys_of_the_archive(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "KEYRINGS", ("/nothing",))
    assert "apt-get install debian-archive-keyring" in str(failure(world))


@pytest.mark.parametrize(
    ("mirrors", "expected"),
    [
        ([], (packages.MIRROR, packages.SECURITY)),
        (
            [("http://m/debian", "bookworm"), ("http://m/debian-security", "bookworm-security")],
            ("http://m/debian", "http://m/debian-security"),
        ),
        ([("http://m/x", "bookworm")], ("http://m/x", packages.SECURITY)),
        ([("http://m/debian", "trixie")], ("http://m/debian", packages.SECURITY)),
        ([("http://archive.ubuntu.com/ubuntu", "noble")], (packages.MIRROR, packages.SECURITY)),
        ([("cdrom:[Debian]", "bookworm")], (packages.MIRROR, packages.SECURITY)),
    ],
)
def test_the_hosts_mirror_is_taken(
    world: World, mirrors: list[tuple[str, str]], expected: tuple[str, str]
) -> None:
    text = "\n".join(f"'{place}/dists/{name}/InRelease' x_InRelease 0" for place, name in mirrors)
    world.plan(mirrors=text)
    assert host_mirrors("bookworm") == expected


def test_nothing_unsigned_is_taken_whatever_the_host_allows(world: World) -> None:
    client = PackageClient(world.brought, ["arm64"])
    client.prepare()
    text = (client.folder / "apt.conf").read_text()
    for name in ("Get::AllowUnauthenticated", "AllowInsecureRepositories", "AllowWeakRepositories"):
        assert f'{name} "false";' in text
    sources = (client.folder / "debian.sources").read_text()
    assert sources.count("Signed-By: ") == sources.count("Types: ") == 2
    assert "Trusted" not in sources


def elf(*headers: int) -> bytes:
    """The headers of a 64-bit little-endian program with program headers of these types."""
    head = b"\x7fELF\2\1" + bytes(26) + struct.pack("<QQIHHH", 64, 0, 0, 64, 56, len(headers))
    return head.ljust(64, b"\0") + b"".join(struct.pack("<I52x", kind) for kind in headers)


@pytest.mark.parametrize(
    ("content", "static"),
    [(elf(1, 1), True), (elf(1, 2, 4), True), (elf(6, 3, 1), False), (b"#!/bin/sh\n", False),
     (b"", False), (b"\x7fELF\2\1", False), (b"\x7fELF\2\1" + b"\xff" * 58, False)],
)  # fmt: skip
def test_a_qemu_with_a_dynamic_loader_is_not_taken(
    content: bytes, static: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would load the arm64 programs' preloaded object, which the supervisor shows it."""
    qemu = tmp_path / "qemu-aarch64"
    qemu.write_bytes(content)
    qemu.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(steps, "run_tool", lambda command: "qemu-aarch64 version 9.2.0")
    assert steps.find_host_qemu() == (str(qemu) if static else None)


def test_how_programs_are_started(world: World, tmp_path: Path) -> None:
    bring(world)
    brought = world.brought
    command, environment = start(brought, ["kmscube", "-A"], {"PATH": "/bin"})
    assert command == [*brought.emulator, str(brought.tree / "usr/bin/kmscube"), "-A"]
    assert environment["PATH"] == f"{brought.folder / 'bin'}:/bin"
    assert start(brought, ["sh"], {})[0] == ["sh"]
    own = tmp_path / "own"
    own.write_bytes((brought.tree / "usr/bin/kmscube").read_bytes())
    assert start(brought, [str(own)], {})[0] == [*brought.emulator, str(own)]
    for program in (sys.executable, str(tmp_path / "none")):
        assert start(brought, [program], {})[0] == [program]


def test_names_for_shells_start_qemu(world: World) -> None:
    bring(world)
    world.brought.qemu.write_text('#!/bin/sh\nfor word; do echo "$word"; done\n')
    out = subprocess.run(
        [str(world.brought.names_folder / "kmscube"), "a b", "$HOME"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert out[:3] == ["-L", "/", "-U"]
    assert out[-3:] == [str(world.brought.folder / "programs/kmscube"), "a b", "$HOME"]


def test_piglits_framework_starts_tests_by_their_names(world: World) -> None:
    known = [*packages.LIBRARIES, *packages.PROGRAMS, "qemu-user-static", "piglit"]
    world.plan(known=known, extra=["piglit"])
    bring(world, "piglit")
    folder = world.brought.folder / "piglit"
    assert (folder / "bin" / "kmscube").is_symlink()
    text = (world.brought.names_folder / "piglit").read_text()
    assert f"PIGLIT_BUILD_DIR={folder}" in text
