"""The kernel's own display tests on the virtual device beside vc4.ko: ``make conformance-igt``.

igt-gpu-tools, built outside this repository, runs twice: its amd64 programs on the virtual DRM
device of ``vc4lab drm``, its arm64 programs in the guest of ``vc4lab linux``, on Debian's vc4.ko.
Each sub-test's result here is compared with the guest's. Writes its part of docs/conformance.md,
only when every program has both results; with ``--only REGEX --page`` for some.

``IGT=DIR`` is a folder with two builds, ``amd64`` and ``arm64``, each with the folders ``tests``
and ``lib`` as Meson fills them. The arm64 build's libraries are those of the packages that
``vc4lab linux --setup -- libcairo2 libproc2-0 libdw1 libpciaccess0 libkmod2`` brings.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks._conformance.__main__ import host_text, say
from benchmarks._conformance.chip import DATA, Causes
from benchmarks._conformance.igt_page import IGT_MARK, Pairs, differences, part
from benchmarks._conformance.page import replace_part
from benchmarks._conformance.runs import Results
from benchmarks._conformance.suites import Missing
from vc4lab import DrmDevice
from vc4lab.drm.device.host import why_not
from vc4lab.drm.setup.places import Brought, find_brought
from vc4lab.linux.archive import Archive, is_whole
from vc4lab.linux.boots import BootFailed, LinuxBoot, LinuxPlan, Show
from vc4lab.linux.objects import needs_of
from vc4lab.linux.root import RootFailed, Tree
from vc4lab.linux.running import Linux, LinuxStopped
from vc4lab.soc.devices.serial.serial import SerialPort
from vc4lab.soc.machine import Machine
from vc4lab.soc.states.state import load_state

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "conformance.md"
WORK = ROOT / "out" / "conformance-igt"
SETUP = "vc4lab linux --setup -- libcairo2 libproc2-0 libdw1 libpciaccess0 libkmod2"
FAMILIES = ("core_", "drm_read", "dumb_buffer", "kms_", "prime_vgem", "syncobj_", "vc4_")
"""Programs by how their names begin."""
NOT_HERE = ("kms_chamelium", "kms_color_helper", "kms_selftest")
"""Programs that need a board with measuring equipment, or a kernel with modules of its own."""
FOLDER = "igt"
"""Where the guest has the programs."""
GUEST_SECONDS = 900.0
"""Guest time within which a program has to end."""
SECONDS = 900
"""The same on the virtual device, on the wall."""
ALONE_SECONDS = 120
"""Within which a sub-test has to end that is run alone; on both sides."""
TRIES = 3
"""A sub-test that fails on the virtual device runs so often: its clock is the busy host's."""
ALONE_IN_GUEST = ("drm_read", "kms_cursor_legacy")
"""Programs whose sub-tests run alone there, each on a machine of its own: together they keep the
guest's processor busy for hours of the host's time, and stopped they go on where they were."""
WHOLE = "-"
"""What stands for a program without sub-tests."""
NOT_COMPLETE = 3
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_RESULT = re.compile(r"^(?:\[[^\]]*\] )?Subtest (\S+): ([A-Z]+)\b", re.MULTILINE)
_ONLY = re.compile(r"^(SUCCESS|SKIP|FAIL)\b", re.MULTILINE)


@dataclass(frozen=True)
class Builds:
    """Both builds."""

    amd64: Path
    arm64: Path

    @property
    def programs(self) -> list[str]:
        """Names of the programs that both have."""
        names = [
            {path.name for path in self._tests(build) if path.name.startswith(FAMILIES)}
            for build in (self.amd64, self.arm64)
        ]
        return sorted(name for name in names[0] & names[1] if not name.startswith(NOT_HERE))

    @staticmethod
    def _tests(build: Path) -> list[Path]:
        places = [*(build / "tests").glob("*"), *(build / "tests" / "vc4").glob("*")]
        return [path for path in places if path.is_file() and os.access(path, os.X_OK)]

    @property
    def environment(self) -> dict[str, str]:
        """For programs that run here."""
        return dict(os.environ, LD_LIBRARY_PATH=str(self.amd64 / "lib"))

    def tests_of(self, name: str) -> list[str]:
        """Names of a program's sub-tests."""
        command = [self.program(self.amd64, name), "--list-subtests"]
        listed = subprocess.run(
            command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        return listed.stdout.split()

    def program(self, build: Path, name: str) -> Path:
        """Where a program of a build is."""
        return next(path for path in self._tests(build) if path.name == name)


def builds_in(folder: Path) -> Builds:
    """Raises Missing."""
    found = Builds(folder / "amd64", folder / "arm64")
    for build in (found.amd64, found.arm64):
        if not (build / "tests").is_dir() or not list((build / "lib").glob("libigt.so*")):
            raise Missing(f"igt-gpu-tools is missing: {build} is no build of it")
    if not found.programs:
        raise Missing(f"igt-gpu-tools is missing: {folder} has no program that both builds have")
    return found


def results_of(output: str, ended: bool) -> dict[str, str]:
    """Result by sub-test of what a program printed; one that it did not end in is "NONE"."""
    text = _COLOURS.sub("", output)
    found = dict(_RESULT.findall(text))
    if not found:
        only = _ONLY.findall(text)
        found = {WHOLE: only[-1] if only else "NONE"}
    if not ended:
        begun = re.findall(r"^Starting subtest: (\S+)", text, re.MULTILINE)
        found.update({begun[-1]: "NONE"} if begun and begun[-1] not in found else {})
    return found


@dataclass(frozen=True)
class Ran:
    """What a program, or one sub-test of it, printed; whether it ended by itself."""

    results: dict[str, str]
    output: str
    ended: bool


class Guest(LinuxBoot):
    """A booted Debian with the programs in its root."""

    def __init__(self, brought: Brought, builds: Builds) -> None:
        super().__init__(brought, LinuxPlan())
        self.builds = builds
        self._plain = self.root
        about = [(path, path.stat().st_size, path.stat().st_mtime_ns) for path in self._files()]
        mark = hashlib.sha256(repr((self.state.name, about)).encode()).hexdigest()[:12]
        self.root, self.state = WORK / f"igt-{mark}.cpio", WORK / f"igt-{mark}.state"

    def _files(self) -> list[Path]:
        build = self.builds.arm64
        programs = [self.builds.program(build, name) for name in self.builds.programs]
        return programs + sorted(path for path in build.glob("lib/*.so*") if path.is_file())

    def make_root(self, show: Show = lambda _text: None) -> None:
        """The usual root, and a second archive with programs and libraries after it."""
        if is_whole(self.root):
            return
        whole, self.root = self.root, self._plain
        self.folder.mkdir(exist_ok=True)
        super().make_root(show)
        self.root = whole
        show("adding the programs")
        made = whole.with_suffix(".new")
        shutil.copyfile(self._plain, made)
        with made.open("ab") as file:
            file.write(bytes(-file.tell() % 4))
            archive, tree = Archive(file), Tree(self.brought)
            waiting = deque(self._files())
            while waiting:
                place = waiting.popleft()
                is_library = ".so" in place.name
                name = f"{FOLDER}/lib/{place.name}" if is_library else f"{FOLDER}/{place.name}"
                if name in archive:
                    continue
                archive.add(name, place.read_bytes(), 0o755)
                needed = needs_of(place)
                for library in needed.libraries if needed is not None else ():
                    if not (self.builds.arm64 / "lib" / library).is_file():
                        waiting.append(self._library(tree, library))
            archive.close()
        made.rename(whole)

    def _library(self, tree: Tree, name: str) -> Path:
        place = tree.library(name)
        if place is None:
            raise RootFailed(f"no package has {name}: {SETUP}")
        file = tree.top / tree.resolve(place)[-1]
        return file if file.name == name else self._named(file, name)

    def _named(self, file: Path, name: str) -> Path:
        """The library under the name that programs know."""
        link = WORK / "libraries" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            link.symlink_to(file)
        return link

    def loaded(self) -> Linux:
        """A machine of its own, as it was saved."""
        self.prepare(say)
        port = SerialPort()
        machine = Machine(self.kernel.image, serial=port, options=self.options)
        load_state(machine, self.state, in_place=True)
        linux = Linux(machine, port)
        linux.run("dmesg -n 1; mount -t debugfs debugfs /sys/kernel/debug")
        linux.run("echo -1 > /proc/sys/kernel/panic")  # the machine stops there, and does not hang
        return linux


def in_the_guest(guest: Guest, name: str, test: str | None) -> Ran:
    """Run a program on vc4.ko."""
    linux = guest.loaded()
    line = " ".join([f"./{name}", *_chosen(test)])
    command = f"cd /{FOLDER}; LD_LIBRARY_PATH=/{FOLDER}/lib {line} > /run/out 2>&1"
    limit = GUEST_SECONDS if test is None else ALONE_SECONDS
    why = ""
    try:
        linux.run(command, seconds=limit)
    except LinuxStopped as stopped:  # by its time, or the kernel has given up
        why = f"\n{stopped}\n"
    try:
        if why:
            linux.interrupt(seconds=GUEST_SECONDS / 10)
        output = linux.run("cat /run/out").output
    except LinuxStopped:
        output = ""
    return Ran(results_of(output, not why), output + why, not why)


def _chosen(test: str | None) -> list[str]:
    return [] if test is None else ["--run-subtest", test]


def on_the_device(builds: Builds, name: str, test: str | None) -> Ran:
    """Run a program on the virtual device."""
    program = builds.program(builds.amd64, name)
    limit = str(SECONDS if test is None else ALONE_SECONDS)
    with DrmDevice() as device, tempfile.TemporaryFile("w+", errors="replace") as file:
        result = device.run(
            ["timeout", "--signal=INT", "--kill-after=20", limit, str(program), *_chosen(test)],
            arm64=False, environment=builds.environment, stdin=subprocess.DEVNULL, stdout=file,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        file.seek(0)
        output = file.read()
    ended = result.exit_code not in (124, 137)
    return Ran(results_of(output, ended), output, ended)


def run(
    side: str,
    one: Callable[[str, str | None], Ran],
    results: Results,
    programs: Sequence[str],
    tests_of: Callable[[str], Sequence[str]],
    tries: int = 1,
    alone: Sequence[str] = (),
) -> None:
    """Run the programs that are not done on one side yet: each whole, unless it is one of `alone`,
    then its sub-tests alone that it did not come to, or did not end; those that fail until they
    have had their `tries`."""
    todo = [name for name in programs if results.by_name.get(name) != "ran"]
    folder = WORK / side
    folder.mkdir(parents=True, exist_ok=True)

    def ran(name: str, test: str | None) -> dict[str, str]:
        this = one(name, test)
        with (folder / f"{name}.txt").open("a", encoding="utf-8", errors="replace") as file:
            file.write(f"== {test or 'whole'}\n{this.output}\n")
        mine = {key: result for key, result in this.results.items() if test in (None, key)}
        return mine if test is None else mine or {test: "NONE"}

    for number, name in enumerate(todo, 1):
        if name not in results.by_name:
            (folder / f"{name}.txt").unlink(missing_ok=True)
            whole = {} if name in alone else ran(name, None)
            if whole.get(WHOLE) == "NONE" and tests_of(name):  # nothing is known of any
                del whole[WHOLE]
            results.add({f"{name} {test}": got for test, got in whole.items()} | {name: "begun"})
        skipped = results.by_name.get(f"{name} {WHOLE}", "NONE") != "NONE"
        for test in () if skipped else tests_of(name):
            key, tried = f"{name} {test}", f"{name} {test} tries"
            known = results.by_name.get(key)
            times = int(results.by_name.get(tried, "1" if known not in (None, "NONE") else "0"))
            while known in (None, "NONE", "FAIL") and times < tries:
                times += 1
                known = ran(name, test)[test]
                results.add({key: known, tried: str(times)})
        results.add({name: "ran"})
        say(f"{side} {number} of {len(todo)}: {name}")


def fingerprint(builds: Builds) -> str:
    """Changes with the simulator and the programs."""
    digest = hashlib.sha256(repr([str(builds.amd64), *builds.programs]).encode())
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def pairs_of(device: Mapping[str, str], guest: Mapping[str, str], programs: Sequence[str]) -> Pairs:
    """By program and sub-test: the result on the device and in the guest."""
    names = {
        name
        for side in (device, guest)
        for name in side
        if name.count(" ") == 1 and name.split(" ")[0] in programs
    }
    return {name: (device.get(name, "-"), guest.get(name, "-")) for name in sorted(names)}


def passed_later(device: Mapping[str, str], pairs: Pairs) -> list[str]:
    """Sub-tests that passed on the device after they had failed."""
    return [
        name
        for name, (result, _) in pairs.items()
        if result == "SUCCESS" and int(device.get(f"{name} tries", "1")) > 1
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 when every difference is explained."""
    parser = argparse.ArgumentParser(prog="make conformance-igt", description=__doc__)
    parser.add_argument("builds", type=Path, metavar="DIR", help="the builds: amd64, arm64")
    parser.add_argument("--only", metavar="REGEX", help="these programs; no page is written")
    parser.add_argument("--page", action="store_true", help="with --only: write it all the same")
    parser.add_argument(
        "--side", action="append", choices=("device", "guest"), help="run there only; then no page"
    )
    parser.add_argument("--note", default="", help="a sentence for the page: how it was made")
    options = parser.parse_args(arguments)
    if why_not():
        print(f"Programs cannot run on a virtual GPU here: {why_not()}", file=sys.stderr)
        return 2
    WORK.mkdir(parents=True, exist_ok=True)
    try:
        builds = builds_in(options.builds.resolve())
        brought = find_brought()
        if brought is None:
            raise Missing(f"a kernel for the guest is missing: {SETUP}")
        guest = Guest(brought, builds)
    except (Missing, BootFailed) as error:
        print(f"{error}.", file=sys.stderr)
        return 2
    programs = [name for name in builds.programs if options.only is None or re.search(options.only, name)]
    here = Results(WORK / f"device-{fingerprint(builds)}.jsonl")
    there = Results(WORK / f"guest-{guest.state.stem}.jsonl")
    try:
        for side in options.side or ("device", "guest"):
            if side == "device":
                one = partial(on_the_device, builds)
                run(side, one, here, programs, builds.tests_of, TRIES)
            else:
                one = partial(in_the_guest, guest)
                run(side, one, there, programs, builds.tests_of, alone=ALONE_IN_GUEST)
    except (BootFailed, RootFailed, OSError) as error:
        print(f"Linux does not run: {error}", file=sys.stderr)
        return NOT_COMPLETE
    except KeyboardInterrupt:
        print("Stopped; the same command goes on.", file=sys.stderr)
        return 130
    if options.side:
        return 0
    pairs = pairs_of(here.by_name, there.by_name, programs)
    causes = Causes(DATA / "causes-igt.toml")
    left_out = [name for name in builds.programs if name not in programs]
    again = passed_later(here.by_name, pairs)
    release, host = guest.kernel.release, host_text()
    text = part(pairs, causes, release, host, left_out, again, options.note)
    if options.only is None or options.page:
        PAGE.write_text(replace_part(PAGE.read_text(encoding="utf-8"), IGT_MARK, text), "utf-8")
        print(f"{PAGE} was written.")
    else:
        print(text)
    return int(any(cause == "unexplained" for _, _, cause in differences(pairs, causes)))


if __name__ == "__main__":
    sys.exit(main())
