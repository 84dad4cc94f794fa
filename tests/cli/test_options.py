"""Every option of every command with values it cannot take: a sentence, and the right exit code.

The options are found in the commands themselves, so that one added later is looked at as well.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
import typer
from tests.support.elf import make_elf
from typer.models import OptionInfo
from typer.testing import CliRunner

from vc4lab.cli.exit_codes import ExitCode
from vc4lab.cli.groups import spread
from vc4lab.cli.main import COMMANDS, app
from vc4lab.cli.options import FILE, Address, FrameRange, Number

ROOT = Path(__file__).parents[2]
HELLO = ROOT / "tests" / "soc" / "kernels" / "hello.img"
JOB = ROOT / "tests" / "data" / "vc4-jobs" / "tri_arm64"
LANES = ROOT / "examples" / "qpu" / "lanes.qasm"
SHADER = ROOT / "tests" / "data" / "tgsi" / "ints.shading-cel.1.frag.tgsi"
CAPTURE = ROOT / "tests" / "data" / "captures" / "small.vc4cap"
BASE = {
    "boot": [HELLO, "--headless"],
    "boards": [],
    "demo": ["--headless"],
    "asm": [LANES],
    "disasm": [HELLO],
    "lint": [LANES],
    "opt": [LANES],
    "compile": [SHADER],
    "run": [LANES, "-m", "out=64", "-u", "5, out"],
    "debug": [LANES, "-m", "out=64", "-u", "5, out", "--batch"],
    "drm": ["--", "true"],
    "gl": ["--", "true"],
    "show": [CAPTURE],
    "pixel": [CAPTURE, "20,20"],
    "vertex": [CAPTURE, 1, 0],
    "view": [CAPTURE],
    "why": [CAPTURE],
    "diff": [f"{CAPTURE}@1", f"{CAPTURE}@2"],
    "check": [CAPTURE],
    "unpack": [CAPTURE, "unpacked"],
    "pack": [CAPTURE, "packed.vc4cap"],
    "linux": ["--initrd", HELLO, "--", "true"],  # which is refused, after all other options
    "replay": [JOB],
    "profile": [JOB, "--no-what-if"],
    "sweep": [JOB, "--set", "slices=3"],  # the chip as it is: one point
    "cache": [],
    "explain": [],
    "unknowns": [],
}
"""Arguments with which each command works."""
WRITTEN = {
    *("--screenshot", "--record", "--save-state", "--audio", "--trace-to", "--output", "--every"),
    *(
        "--tiles",
        "--record-jobs",
        *("--capture", "--pictures"),
        "--perfetto",
        "--html",
        "--junit",
        "--svg",
        "--csv",
        "--results",
    ),
}
"""Options that name what is written."""
HUGE = "9" * 30
ENDLESS = "9" * 5000


@dataclass(frozen=True)
class Found:
    """An option of a command, as its function declares it."""

    command: str
    option: str
    kind: Any
    info: Any


def _found() -> list[Found]:
    found = []
    for name in COMMANDS:
        function = spread(getattr(import_module(f"vc4lab.cli.{name}"), name))
        for parameter, hint in get_type_hints(function, include_extras=True).items():
            if get_origin(hint) is not Annotated:
                continue
            kind, info = get_args(hint)
            kinds = [k for k in get_args(kind) or (kind,) if k is not type(None)]
            if isinstance(info, OptionInfo):
                flags = info.param_decls or [f"--{parameter.replace('_', '-')}"]
                found.append(Found(name, flags[-1], kinds[0], info))
    return found


OPTIONS = _found()
WHOLE = [o for o in OPTIONS if o.kind is int and o.info.parser is None]
NUMBERS = [o for o in OPTIONS if isinstance(o.info.parser, Number)]
ADDRESSES = [o for o in OPTIONS if isinstance(o.info.parser, Address)]
CHOICES = [o for o in OPTIONS if isinstance(o.kind, type) and issubclass(o.kind, Enum)]
FILES = [o for o in OPTIONS if o.kind is Path]


def named(found: list[Found]) -> dict[str, Any]:
    return {"argvalues": found, "ids": [each.command + each.option for each in found]}


def vc4lab(*arguments: object, code: ExitCode = ExitCode.BAD_INPUT) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, (arguments, result.output)
    assert result.exception is None or isinstance(result.exception, SystemExit), arguments
    assert "CLI-003" not in result.output
    assert result.output.strip()
    assert max(map(len, result.output.splitlines())) < 400
    return result.output


def test_every_command_is_here():
    assert set(BASE) == set(COMMANDS)
    for name in ("boot", "run", "replay", "asm", "disasm", "boards"):
        vc4lab(name, *BASE[name], code=ExitCode.OK)


def test_every_number_has_a_range():
    assert len(WHOLE) > 5
    assert all(each.info.min is not None and each.info.max is not None for each in WHOLE)
    assert len(NUMBERS) == sum(each.kind is float for each in OPTIONS)
    assert all(each.info.parser is FILE for each in FILES)


def refused(found: Found, *values: object) -> None:
    for value in values:
        vc4lab(found.command, f"{found.option}={value}", *BASE[found.command])


@pytest.mark.parametrize("option", **named(WHOLE))
def test_whole_numbers(option):
    least, most = option.info.min, option.info.max
    refused(option, least - 1, most + 1, HUGE, f"-{HUGE}", "x", "", "1.5", "inf")


def test_frames_from_one_to_another():
    for text, found in (("3", (0, 3)), ("3:3", (3, 3)), ("3:4", (3, 4))):
        assert FrameRange()(text) == found
    for text in ("4:3", "0", "3:", ":3", "x", "1:2:3"):
        with pytest.raises(typer.BadParameter):
            FrameRange()(text)


@pytest.mark.parametrize("option", **named(NUMBERS))
def test_numbers(option):
    refused(option, "inf", "-inf", "nan", "1e400", "-1", "1e30", HUGE, "x", "", ENDLESS)


@pytest.mark.parametrize("option", **named(ADDRESSES))
def test_addresses(option):
    refused(option, "-1", "0x100000000", "0x10000000000000000", HUGE, "x", "", "1e3", "0x", ENDLESS)


@pytest.mark.parametrize("option", **named(CHOICES))
def test_choices(option):
    refused(option, "x", "", "JIT", HUGE)


@pytest.mark.parametrize("option", **named(FILES))
def test_empty_names(option):
    refused(option, "")


def test_empty_arguments():
    for command in ("boot", "replay", "profile", "sweep", "run", "asm", "disasm"):
        vc4lab(command, "")
    vc4lab("drm", "--", "")
    vc4lab("gl", "--", "")


TEXTS = {
    "view": {"--at": ["x", "", "#f", "#f1/p1,", "#f1/p1,2,3/d", "f1/p,"]},
    "boot": {
        "--board": ["x", "", "pi4"],
        "--serial": ["tcp:", "tcp:x", "tcp:-1", "tcp:65536", "tcp:" + HUGE, "tcp:example.org:80"],
        "--trace": ["x", "", ","],
        "--append": ["x" * 1025],
        "--unknown": ["x", "x=y", "", "=", "fill_rule="],
        "--initrd": ["none", "folder", "/dev/zero", "empty", "huge"],
        "--dtb": ["none", "folder", "/dev/zero", "empty", "text", "huge"],
        "--symbols": ["none", "folder", "/dev/zero", "empty", "text", "other.elf"],
        "--load-state": ["none", "folder", "/dev/zero", "empty", "text"],
        "--card": ["none", "/dev/zero"],
        "--load-address": ["0x8001", "0x3f000000"],
        "--screenshot": ["x.nofmt", "noending"],
        "--record": ["x.nofmt", "noending"],
    },
    "asm": {"--dialect": ["x", ""]},
    "disasm": {"--offset": ["0x100000"], "--symbol": ["x", ""]},
    "lint": {"--dialect": ["x", ""]},
    "compile": {
        "--stage": ["vertex", "none"],
        "--api": ["x", "", "GL"],
        "--compare": ["none", "", "folder", "no-no", "none.bin", "text"],
        "--chip": ["videocore4"],
        "--board": ["pi1"],
    },
    "run": {
        "-u": [
            "x", "1e99", "1++2", "0x", "1.5*qpu", HUGE * 200, HUGE, "0x100000000", "-2147483649",
        ],
        "-m": [
            "x", "x=", "=4", "x=-1", "x=0", "x=1e3", "x=@", "x=@none", "x=@folder", "qpu=4", "x=0x",
            f"x={HUGE}", f"x={HUGE * 200}", "out=4",
        ],
        "-d": ["x", "out:hex:-1", f"out:hex:{HUGE}", "out:hex:x", "out:oct"],
        "-o": ["x=y", "out", "out="],
        "--entry": ["x", ""],
        "--dialect": ["x", ""],
        "--unknown": ["x", "x=y", "", "=", "fill_rule="],
    },
    "drm": {
        "--screenshot": ["x.nofmt", "noending"],
        "--driver": ["none", "folder", "empty"],
        "--trace": ["x", ""],
        "--suite": ["x", "", "../bookworm"],
        "--unknown": ["x", "x=y", "", "=", "fill_rule="],
        "--modes": ["x", "", "0x0", "99999x9999", f"{HUGE}x1", "640x480@0", "-1x1"],
    },
    "gl": {
        "--trace": ["x", "", "ioctl"],
        "--frames": ["x", "", "0", "-1", "0:1", "2:1", "1:2:3", "1:x", ":", "1:", HUGE, "1:2"],
    },
    "linux": {
        "--screenshot": ["x.nofmt", "noending"],
        "--suite": ["x", "", "../bookworm"],
        "--unknown": ["x", "x=y", "", "=", "fill_rule="],
        "--initrd": ["none", "folder", "/dev/zero"],
        "--card": ["none", "/dev/zero"],
        "--put": ["none", "none:/x", "text:..", "text:/", ":", ""],
        "--arch": ["x", "", "armel"],
        "--root": ["x", "", "small"],
    },
    "replay": {
        "--job": ["2", "9"],
        "--tiles": ["x.nofmt", "noending"],
        "-o": ["x.nofmt", "noending"],
        "--unknown": ["x", "x=y", "", "=", "fill_rule="],
        "--chip": ["videocore4"],
        "--board": ["pi1"],
    },
    "profile": {
        "--job": ["2", "9"],
        "--chip": ["none", "folder", "/dev/zero", "empty", "text", "huge"],
        "--board": ["x", "pi4"],
        "--unknown": ["x", "x=y", "", "=", "fill_rule="],
    },
    "sweep": {
        "--chip": ["none", "folder", "/dev/zero", "empty", "text", "huge"],
        "--board": ["x", "pi4"],
        "--set": ["x", "", "=", "x=", "tmu.latency=", f"tmu.latency={HUGE}", "tmu.latency=1..",
                  "tmu.latency=..1", "tmu.latency=1..2:x", f"tmu.latency={ENDLESS}"],
    },
}  # fmt: skip
TEXT_CASES = [(c, o, v) for c, table in TEXTS.items() for o, vs in table.items() for v in vs]


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files that are of no use."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("neither a tree nor a state\n")
    (tmp_path / "other.elf").write_bytes(make_elf({"f": (0x8000, 4)}, {0x8000: b"other program"}))
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(2 << 30)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "option", "value"), TEXT_CASES, ids=[f"{c}{o}={v[:20]}" for c, o, v in TEXT_CASES]
)
def test_texts(odd, command, option, value):
    joined = [f"{option}={value}"] if option.startswith("--") else [option, value]
    vc4lab(command, *joined, *BASE[command])


@pytest.mark.parametrize(
    "arguments",
    [
        ["boot", "none"], ["boot", "/dev/zero"], ["boot", "empty"], ["boot", "huge"],
        ["boot", "folder"], ["replay", "none"], ["replay", "folder"], ["replay", "/dev/zero"],
        ["replay", "empty"], ["run", "none"], ["run", "folder"], ["run", "/dev/zero"],
        ["run", "empty"], ["run", "huge"], ["asm", "none"], ["asm", "folder"], ["asm", "huge"],
        ["profile", "none"], ["profile", "folder"], ["profile", "/dev/zero"], ["profile", "empty"],
        ["sweep", "none", "--set", "slices=1"], ["sweep", "/dev/zero", "--set", "slices=1"],
        ["disasm", "none"], ["disasm", "folder"], ["disasm", "empty"], ["disasm", "huge"],
        ["compile", "none"], ["compile", "folder"], ["compile", "empty"], ["compile", "huge"],
        ["explain", "x"], ["explain", ""], ["unknowns", "x"], ["boards", "x"], ["nothing"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_files_that_cannot_be_used(odd, arguments):
    vc4lab(*arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["boot", HELLO, "--headless", option, value]
        for option in ("--screenshot", "--record", "--save-state", "--audio", "--serial")
        for value in ("none/x.png", "folder")
        if (option, value) not in (("--screenshot", "folder"), ("--record", "folder"))
    ]
    + [
        ["boot", HELLO, "--trace", "mmio", "--trace-to", "none/x"],
        ["asm", LANES, "-o", "none/x"],
        ["asm", LANES, "-o", "folder"],
        ["run", LANES, "-m", "out=64", "-o", "out=none/x"],
        ["replay", JOB, "-o", "empty/x.png"],
        ["replay", JOB, "--tiles", "empty/x.png"],
        ["replay", JOB, "--tiles", "empty/x.csv"],
        ["replay", JOB, "--every", "empty"],
        ["sweep", JOB, "--set", "slices=1", "--results", "folder"],
        ["sweep", JOB, "--set", "slices=1", "--results", "/dev/zero"],
        ["sweep", JOB, "--set", "slices=1", "--results", "empty/x"],
        ["demo", "--frames", "1", "--headless", "--output", "empty"],
    ],
    ids=lambda arguments: " ".join(Path(a).name for a in map(str, arguments)),
)
def test_what_cannot_be_written(odd, arguments):
    """Exit code 5, whatever it is and whenever that is found."""
    vc4lab(*arguments, code=ExitCode.OUTPUT)


UNSEEN = ("x" * 300 + ".png", "circle.png")
"""Names at which the system refuses to look: too long, a link to itself."""
NEEDED = {"--trace-to": ["--trace", "irq"]}
"""What else must be given, so that an option has a meaning."""


@pytest.fixture
def circle(odd: Path) -> Path:
    (odd / "circle.png").symlink_to("circle.png")
    return odd


@pytest.mark.parametrize("name", UNSEEN, ids=["long", "circle"])
@pytest.mark.parametrize("option", **named(FILES))
def test_names_at_which_nothing_can_be(circle, option, name):
    code = ExitCode.OUTPUT if option.option in WRITTEN else ExitCode.BAD_INPUT
    needed = NEEDED.get(option.option, [])
    vc4lab(option.command, f"{option.option}={name}", *needed, *BASE[option.command], code=code)


@pytest.mark.parametrize("name", UNSEEN, ids=["long", "circle"])
def test_arguments_at_which_nothing_can_be(circle, name):
    for command in ("boot", "asm", "disasm", "run", "replay"):
        vc4lab(command, name)
    vc4lab("run", LANES, "-m", f"out=@{name}")
    vc4lab("run", LANES, "-m", "out=64", "-o", f"out={name}", code=ExitCode.OUTPUT)
    vc4lab("boot", HELLO, "--headless", "--serial", name, code=ExitCode.OUTPUT)


def test_device_tree_that_is_not_handed_over(tmp_path):
    from vc4lab.soc.boot.tree.device_tree import device_tree

    (tmp_path / "kernel7.img").write_bytes(HELLO.read_bytes())
    (tmp_path / "config.txt").write_text("disable_commandline_tags=1\n")
    (tmp_path / "t.dtb").write_bytes(device_tree("m", "c", 1, 2, 3, ""))
    vc4lab("boot", tmp_path, "--serial", "none", code=ExitCode.OK)
    text = vc4lab("boot", tmp_path, "--dtb", tmp_path / "t.dtb")
    assert "disable_commandline_tags" in text


def test_a_name_on_the_card_is_no_option(tmp_path):
    """A damaged tree that config.txt asks for is left out, as the firmware does."""
    (tmp_path / "kernel7.img").write_bytes(HELLO.read_bytes())
    (tmp_path / "config.txt").write_text("device_tree=/dtb\ninitramfs /initrd\n")
    (tmp_path / "dtb").write_bytes(b"no tree")
    (tmp_path / "initrd").write_bytes(b"")
    assert "BOOT-031" in vc4lab("boot", tmp_path, "--serial", "none", code=ExitCode.OK)


STREAMS = [
    (0, ["asm", "-"], ExitCode.BAD_INPUT, "is closed"),
    (0, ["disasm", "-"], ExitCode.BAD_INPUT, "is closed"),
    (0, ["boot", HELLO, "--headless", "--serial", "stdio"], ExitCode.OK, "has ended"),
    (1, ["asm", LANES], ExitCode.OUTPUT, "CLI-001"),
    (1, ["disasm", LANES], ExitCode.OUTPUT, "CLI-001"),
    (1, ["boards"], ExitCode.OUTPUT, "CLI-001"),
    (1, ["--help"], ExitCode.OUTPUT, "CLI-001"),
    (1, ["run", *BASE["run"]], ExitCode.OUTPUT, "CLI-001"),
    (1, ["replay", JOB], ExitCode.OUTPUT, "CLI-001"),
    (1, ["boot", HELLO, "--headless"], ExitCode.OUTPUT, "CLI-001"),
    (1, ["boot", HELLO, "--headless", "--serial", "none"], ExitCode.OK, "has ended"),
    (2, ["boot", HELLO, "--headless"], ExitCode.OK, ""),
    (2, ["asm", "/nonexistent"], ExitCode.BAD_INPUT, ""),
]


@pytest.mark.parametrize(
    ("closed", "arguments", "code", "text"),
    STREAMS,
    ids=[f"{closed} {arguments[0]}{i}" for i, (closed, arguments, _c, _t) in enumerate(STREAMS)],
)
def test_streams_that_are_closed(closed, arguments, code, text):
    command = [sys.executable, "-m", "vc4lab", *map(str, arguments)]
    done = subprocess.run(
        ["sh", "-c", f'"$@" {closed}>&-', "sh", *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    assert text in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_names_that_are_no_text(tmp_path):
    """A file's name that is not UTF-8 can be printed."""
    name = os.fsdecode(bytes(tmp_path) + b"/\xff.png")
    command = [sys.executable, "-m", "vc4lab", "replay", JOB, "-o", name]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert Path(name).exists()
