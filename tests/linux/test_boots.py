"""What a boot is made of, and what is said where something is missing."""

import errno
import os
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest
from typer.testing import CliRunner

from vc4lab.cli import linux as command
from vc4lab.cli import session
from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.main import app
from vc4lab.cli.settings import Settings
from vc4lab.drm.setup.places import Brought
from vc4lab.linux import boots
from vc4lab.linux.archive import Archive
from vc4lab.linux.boots import BootFailed, LinuxBoot, LinuxPlan
from vc4lab.linux.kernels import TARGETS, architecture_of, command_line, find_kernel
from vc4lab.linux.running import Linux
from vc4lab.memory import GuestMemory
from vc4lab.soc.boot.boot_extras import BootExtras
from vc4lab.soc.boot.boot_plan import RAMDISK_NAME, Piece
from vc4lab.soc.boot.tree.device_tree import device_tree
from vc4lab.soc.states.state import StateError


def linux(*arguments: str, code: int = ExitCode.BAD_INPUT) -> str:
    result = CliRunner().invoke(app, ["linux", *arguments])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result.output


def empty_root(boot: LinuxBoot) -> None:
    with open(boot.root, "wb") as file:
        Archive(file).close()


def test_the_newest_whole_kernel_is_taken(brought: Brought) -> None:
    kernel = find_kernel(brought)
    assert kernel is not None
    assert kernel.release == "6.1.0-10-arm64"
    assert kernel.tree("pi3").is_file()


def test_states_have_names_of_their_own(brought: Brought) -> None:
    plans = [
        LinuxPlan(), LinuxPlan(cores=2), LinuxPlan(append="quiet"), LinuxPlan(),
        LinuxPlan(files=("usr/share/a",)),
    ]  # fmt: skip
    states = [LinuxBoot(brought, plan).state for plan in plans]
    assert states[0] == states[3]
    assert len(set(states)) == 4
    before = LinuxBoot(brought).root
    (brought.folder / "packages/mesa_2_arm64.deb").write_text("")
    assert LinuxBoot(brought).root != before


def test_what_a_killed_command_left_goes(tmp_path: Path) -> None:
    left, written = tmp_path / ".vc4lab-1", tmp_path / ".vc4lab-2"
    for file in (left, written):
        file.write_bytes(b"half")
    long_ago = time.time() - 2 * boots.CUT_OFF_SECONDS
    os.utime(left, (long_ago, long_ago))
    boots._drop_oldest(tmp_path, "*.state")
    assert not left.exists()
    assert written.exists(), "another command may be writing it"


def test_a_cache_that_cannot_be_written_to_is_used(brought: Brought, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ended with "None: Read-only file system"."""
    boot = LinuxBoot(brought)
    boot.folder.mkdir()
    empty_root(boot)
    with zipfile.ZipFile(boot.state, "w"):
        pass

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(Path, "mkdir", refuse)
    boot.prepare()


def test_a_root_that_was_cut_off_is_made_again(brought: Brought, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel said that it had no root, at each start."""
    made: list[bytes] = []

    def make(_brought: Brought, _release: str, _programs: object, file: IO[bytes], _: object) -> None:
        archive = Archive(file)
        archive.add("file", bytes(1000))
        archive.close()
        made.append(b"")

    monkeypatch.setattr(boots, "make_root", make)
    boot = LinuxBoot(brought)
    boot.make_root()
    whole = boot.root.read_bytes()
    for size in (0, 10, 500, len(whole) - 20):
        boot.root.write_bytes(whole[:size])
        boot.make_root()
        assert boot.root.read_bytes() == whole
    boot.make_root()
    assert len(made) == 5


def test_an_interrupted_setup_resumes(brought: Brought) -> None:
    brought.incomplete()
    assert "nothing is installed yet: vc4lab linux --setup\n" in linux("--", "true")
    (brought.folder / "apt").mkdir()
    assert "is not complete: vc4lab linux --setup resumes\n" in linux("--", "true")


def test_the_command_line() -> None:
    assert (
        command_line("ttyS1,115200", 4, "quiet")
        == "console=ttyS1,115200 nr_cpus=4 norandmaps cryptomgr.notests quiet"
    )
    line = command_line("ttyS1,115200", 1, "cma=64M", "cma=256M")
    assert line == "console=ttyS1,115200 nr_cpus=1 norandmaps cryptomgr.notests cma=256M cma=64M"


def test_what_cannot_be_booted_is_said(brought: Brought) -> None:
    with pytest.raises(BootFailed, match="arm64: a pi2 starts Debian's kernel for armhf"):
        LinuxBoot(brought, LinuxPlan(board="pi2"))
    assert "pi2-1.2: Debian's kernels start on pi3, pi2, zero" in linux("--board", "pi2-1.2")
    assert "armel: a pi3 starts Debian's kernel for arm64, armhf" in linux("--arch", "armel")
    assert "installed yet: vc4lab linux --setup --board zero\n" in linux("--board", "raspi0")
    assert "--setup --arch armhf\n" in linux("--arch", "armhf")
    assert "armel        not installed" in linux("--check", "--board", "pi1")
    assert "--suite sid: bookworm or trixie" in linux("--suite", "sid")
    assert "in the root of --setup only" in linux("--initrd", "x", "--", "true")
    assert "more than 1024 bytes" in linux("--append", "x" * 2000)


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("x", "'x' is not a mode such as 1280x720"),
        ("", "'' is not a mode"),
        ("-1x1", "'-1x1' is not a mode"),
        ("0x0", "modes have sides of 64 to 2048 pixels, 1 to 240 Hz"),
        ("63x480", "sides of 64 to 2048 pixels"),
        ("99999x9999", "sides of 64 to 2048 pixels"),
        ("640x480@0", "1 to 240 Hz"),
        ("640x480@241", "1 to 240 Hz"),
        (",".join(["640x480"] * 9), "1 to 8 modes, not 9"),
        ("1920x1080@75", "a pixel clock of 174.6 MHz"),
    ],
)
def test_modes_that_a_monitor_cannot_have_are_refused_before_anything_boots(
    brought: Brought, mode: str, text: str
) -> None:
    output = linux("--modes", mode, "--", "true")
    assert f"--modes {mode}: " in output
    assert text in output
    assert not list((brought.folder / "linux").glob("*"))


def test_modes_belong_to_the_root_of_setup(brought: Brought) -> None:
    assert "--modes: only for the root of --setup" in linux("--initrd", __file__, "--mode", "x")


@pytest.mark.parametrize("word", ["x" * 70_000, "a\0b"])
def test_a_command_that_cannot_be_typed_is_refused_before_anything_boots(brought: Brought, word: str) -> None:
    assert "vc4lab linux: the command" in linux("--", "echo", word)
    assert not list((brought.folder / "linux").glob("*"))


@pytest.mark.parametrize(
    ("options", "terminal", "realtime"),
    [((), True, True), ((), False, False), (("--no-realtime",), True, False), (("--realtime",), False, True)],
)
def test_a_terminals_time_is_that_of_the_wall(
    brought: Brought,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    terminal: bool,
    realtime: bool,
) -> None:
    """A Debian that waited at its login spent a minute in each second, and its login timed out."""
    kept: list[Settings] = []
    monkeypatch.setattr(session, "run_session", lambda settings: kept.append(settings) or 0)
    stdin = SimpleNamespace(isatty=lambda: terminal)
    monkeypatch.setattr(command, "sys", SimpleNamespace(stdin=stdin))
    linux("--initrd", __file__, *options, code=ExitCode.OK)
    assert kept[0].realtime == realtime
    assert kept[0].says_late == (options == ("--realtime",))


def test_boards_get_their_architecture() -> None:
    assert [architecture_of(board) for board in ("pi3", "pi2", "zero", "pi1")] == [
        "arm64", "armhf", "armel", "armel",
    ]  # fmt: skip
    assert architecture_of("pi3", "armhf") == "armhf"


def test_programs_that_need_a_driver_that_there_is_none_of(tmp_path: Path) -> None:
    made = Brought("bookworm", tmp_path, "armel")
    release = "6.1.0-9-rpi"
    for name in (
        f"usr/lib/linux-image-{release}/{TARGETS['zero', 'armel'].tree}",
        f"boot/vmlinuz-{release}", "usr/bin/kmscube", "usr/bin/modetest",
        f"usr/lib/modules/{release}/modules.builtin",
    ):  # fmt: skip
        (made.tree / name).parent.mkdir(parents=True, exist_ok=True)
        (made.tree / name).write_bytes(b"")
    (made.folder / "packages").mkdir()
    assert LinuxBoot(made, LinuxPlan("zero")).programs == ["modetest"]
    driver = made.tree / "usr/lib/arm-linux-gnueabi/dri/vc4_dri.so"
    text = "kmscube needs Mesa's vc4 driver, which Debian does not build for armel; a build of "
    with pytest.raises(BootFailed, match=f"{text}yours goes to {driver}"):
        LinuxBoot(made, LinuxPlan("zero", programs=("kmscube",)))
    driver.parent.mkdir(parents=True)
    driver.write_bytes(b"")
    assert LinuxBoot(made, LinuxPlan("zero")).programs == ["kmscube", "modetest"]


def test_a_root_that_cannot_be_made_is_said(brought: Brought) -> None:
    assert "it is missing" in linux("--", "true")
    assert not list((brought.folder / "linux").glob("*"))


def test_a_missing_device_tree_is_said(brought: Brought, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boots, "make_root", lambda *arguments: arguments[3].write(b"x"))
    for path in brought.tree.rglob("*-3-b.dtb"):
        path.unlink()
    assert "bcm2837-rpi-3-b.dtb is not a file" in linux("--", "true")


def test_a_kernel_that_never_comes_to_a_shell_is_said(
    brought: Brought, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that prints something else and ends."""
    monkeypatch.setattr(boots, "make_root", lambda *arguments: arguments[3].write(b"x"))
    tree = device_tree("Raspberry Pi 3", "bcm2837", 1 << 29, 0xA02082, 1, "", None)
    for path in brought.tree.rglob("*-3-b.dtb"):
        path.write_bytes(tree)
    text = linux("--", "true")
    assert "Linux did not start: " in text
    assert "Its last lines:" in text
    assert not list((brought.folder / "linux").glob("*.state"))


@pytest.mark.parametrize("content", [b"", b"noise", b"PK\3\4 cut off before its table"])
def test_a_damaged_state_is_made_again(
    brought: Brought, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    boot = LinuxBoot(brought)
    boot.folder.mkdir(exist_ok=True)
    empty_root(boot)
    boot.state.write_bytes(content)
    booted = SimpleNamespace(plan=SimpleNamespace(pieces=()))
    monkeypatch.setattr(LinuxBoot, "power_on", lambda _boot, _show: booted)
    saved = []
    monkeypatch.setattr(boots, "save_state", lambda machine, path, packed, private: saved.append(path))
    assert not boot.has_state
    boot.prepare()
    assert saved == [boot.state]
    with zipfile.ZipFile(boot.state, "w") as archive:
        archive.writestr("state.json", "{}")
    boot.prepare()
    assert len(saved) == 1


def test_check(brought: Brought) -> None:
    (brought.folder / "programs").mkdir()
    text = linux("--check", code=ExitCode.OK)
    assert "vmlinuz-6.1.0-10-arm64" in text
    assert "none yet: the first run boots" in text
    for path in (brought.tree / "boot").iterdir():
        path.unlink()
    assert "there is no kernel" in linux("--check")
    (brought.folder / "complete").unlink()
    assert "vc4lab linux --setup" in linux("--check")
    assert "vc4lab linux --setup" in linux("--", "true")


def test_pages_of_a_freed_ram_disk_are_cleared() -> None:
    freed = bytes((boots.POISON_FREE_INITMEM,)) * boots.PAGE
    piece = Piece(RAMDISK_NAME, 0x100000, bytes(4 * boots.PAGE))
    other = Piece("the device tree", 0x200000, bytes(boots.PAGE))
    memory = GuestMemory()
    used = bytearray(freed)
    used[77] = 1
    memory.write(piece.address, freed + used + freed + freed)
    memory.write(other.address, freed)
    plan = SimpleNamespace(pieces=(piece, other))
    boots.clear_ramdisk(SimpleNamespace(plan=plan, memory=memory))  # type: ignore[arg-type]
    wanted = bytes(boots.PAGE) + used + bytes(2 * boots.PAGE)
    assert memory.read(piece.address, 4 * boots.PAGE) == wanted
    assert memory.read(other.address, boots.PAGE) == freed


def test_the_oldest_states_go(tmp_path: Path) -> None:
    for number in range(boots.KEPT + 3):
        path = tmp_path / f"{number}.state"
        path.write_text("")
        os.utime(path, (number, number))
    boots._drop_oldest(tmp_path, "*.state")
    left = sorted(int(path.stem) for path in tmp_path.iterdir())
    assert left == list(range(3, boots.KEPT + 3))


def test_a_state_that_does_not_load_is_made_again(brought: Brought, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of it has changed, or it is of a version between two versions."""
    states, said = [], []

    def prepare(boot: LinuxBoot, _show: object) -> None:
        boot.folder.mkdir(exist_ok=True)
        states.append(boot.state.exists())
        boot.state.write_bytes(b"")

    def loaded(boot: LinuxBoot) -> str:
        if len(states) == 1:
            raise StateError("the file is damaged")
        return "loaded"

    monkeypatch.setattr(LinuxBoot, "prepare", prepare)
    monkeypatch.setattr(Linux, "_loaded", loaded)
    assert Linux.booted(show=said.append) == "loaded"
    assert states == [False, False]
    assert said[0].endswith("the file is damaged; it is made again")


def test_the_command_makes_a_damaged_state_again(brought: Brought, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def prepare(boot: LinuxBoot, _show: object = None) -> None:
        boot.folder.mkdir(exist_ok=True)
        boot.state.write_bytes(b"noise")
        made.append(boot.state)

    monkeypatch.setattr(LinuxBoot, "prepare", prepare)
    monkeypatch.setattr(LinuxBoot, "extras", BootExtras("console=ttyS1"))
    text = linux("--", "true")
    assert len(made) == 2  # and the second is no better
    assert text.count("it is removed, and made again") == 2
    assert "CLI-005" not in text
