"""A host with pretended package tools: apt-get and dpkg-deb are small scripts."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from vc4lab.drm.setup import packages, steps
from vc4lab.drm.setup.places import Brought

APT = """
import hashlib, json, os, sys
from pathlib import Path
CONTENT = b"x" * 100
SUM = hashlib.sha256(CONTENT).hexdigest()
world = Path({world!r})
plan = json.loads((world / "plan.json").read_text())
arguments = sys.argv[1:]
log = world / "log"
settings = {{}}
words, status = [], None
while arguments:
    word = arguments.pop(0)
    if word == "-o":
        name, _, value = arguments.pop(0).partition("=")
        settings[name] = value
    elif word == "-c":
        for line in Path(arguments.pop(0)).read_text().splitlines():
            if not line.startswith("#") and '"' in line:
                name, _, value = line.rstrip(";").partition(" ")
                settings[name] = value.strip('"')
    elif word != "-q":
        words.append(word)
with open(log, "a") as file:
    print(*words, file=file)
if words == ["update", "--print-uris"]:
    print(plan.get("mirrors", ""))
    sys.exit(0)
if words[0] == "update":
    text = plan.get("update")
    if text:
        print(text)
        sys.exit(100)
    sys.exit(0)
assert settings["APT::Get::AllowUnauthenticated"] == "false"
names = [n.removesuffix(":arm64") for n in words[1:] if not n.startswith("--")]
known = Path(settings["Dir::Etc::sourcelist"]).read_text()
assert ("Architectures: arm64\\n" in known) == (names[0][:4] != "qemu"), known
broken = plan.get("broken")
if broken and f"Package: {{broken}}\\n" in Path(settings["Dir::State::status"]).read_text():
    print("E: Unmet dependencies. Try 'apt --fix-broken install'.", file=sys.stderr)
    sys.exit(100)
qemu = any(n.startswith("qemu") for n in names)
for name in names:
    if name in plan.get("virtual", []):
        print("Reading package lists...")
        print("Package", name, "is a virtual package provided by:")
        print("  exim4-daemon-light 4.96-15+deb12u7")
        print("  postfix 3.7.11-0+deb12u1")
        print("You should explicitly select one to install.")
        print("E: Package '" + name + "' has no installation candidate", file=sys.stderr)
        sys.exit(100)
    if name.partition(":")[0] not in plan["known"]:
        print("E: Unable to locate package", name, file=sys.stderr)
        sys.exit(100)
status = Path(settings["Dir::State::status"]).read_text()
wanted = ["qemu-user-static"] if qemu else [n for n in plan["known"] if n[:4] != "qemu"]
extra = plan.get("extra", [])
wanted = [n for n in wanted if f"Package: {{n}}\\n" not in status + "\\n"]
wanted = [n for n in wanted if n not in extra or n in names]
archives = Path(settings["Dir::Cache::archives"])
files = [f"{{n}}_1_arm64.deb" for n in wanted]
if "--print-uris" in words:
    for file in files:
        if not (archives / file).exists():
            kind = settings["Acquire::ForceHash"]
            print(f"'http://mirror/{{file}}' {{file}} 100 {{kind}}:{{SUM}}")
    print("After this operation,", plan.get("unpacked", "1 kB"), "of additional disk space")
    sys.exit(0)
progress = int(settings["APT::Status-Fd"])
for count, file in enumerate(files):
    if (archives / file).exists():
        continue
    if plan.get("stop_at") == file:
        print(plan["stop_text"])
        sys.exit(100)
    with open(log, "a") as out:
        print("got", file, file=out)
    (archives / file).write_bytes(CONTENT)
    os.write(progress, f"dlstatus:{{count}}:{{100 * count / len(files)}}:Retrieving\\n".encode())
"""

DPKG = """
import json, os, sys
world = {world!r}
with open(world + "/plan.json") as file:
    plan = json.load(file)
action, file, *rest = sys.argv[1:]
name = os.path.basename(file).partition("_")[0]
if action == "-f":
    kind = plan.get("architectures", {{}}).get(name, "arm64")
    print(f"Package: {{name}}\\nVersion: 1\\nArchitecture: {{kind}}")
elif action == "-x":
    target = rest[0] + "/"
    if plan.get("fail_at") == name:
        os.mkdir(target)
        open(target + "half", "w").close()
        print(plan["fail_text"], file=sys.stderr)
        sys.exit(2)
    head = b"\\x7fELF\\2\\1".ljust(18, b"\\0") + b"\\xb7\\0"
    contents = {{"lib/aarch64-linux-gnu/" + name + ".so": head, f"usr/bin/{{name}}": head,
                f"usr/share/doc/{{name}}/copyright": b""}}
    if name == "libgl1-mesa-dri":
        contents["usr/lib/aarch64-linux-gnu/dri/vc4_dri.so"] = head
    for path, data in contents.items():
        os.makedirs(os.path.dirname(target + path), exist_ok=True)
        with open(target + path, "wb") as out:
            out.write(data)
        os.chmod(target + path, 0o4755)
    os.makedirs(target + "usr/lib/aarch64-linux-gnu", exist_ok=True)
    os.symlink("/lib/aarch64-linux-gnu/" + name + ".so", target + "usr/lib/aarch64-linux-gnu/link")
elif action == "--fsys-tarfile":
    import io, tarfile  # once in a set-up; the others start 20 times
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
        for path, data in (("./usr/bin/qemu-arm", b"no"),
                           ("./usr/bin/qemu-aarch64-static", b"#!/bin/sh\\n")):
            member = tarfile.TarInfo(path)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
"""


@dataclass
class World:
    """What the pretended tools do, and what they were asked."""

    folder: Path
    brought: Brought

    def plan(self, **changes: object) -> None:
        known = [*packages.LIBRARIES, *packages.PROGRAMS, "qemu-user-static"]
        (self.folder / "plan.json").write_text(json.dumps({"known": known, **changes}))

    def log(self) -> list[str]:
        """What was asked since the last time."""
        file = self.folder / "log"
        text = file.read_text() if file.exists() else ""
        file.unlink(missing_ok=True)
        return text.splitlines()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Tools in PATH and an empty cache."""
    if os.uname().machine != "x86_64":
        pytest.skip("--setup is for x86-64 hosts")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (("apt-get", APT), ("dpkg-deb", DPKG)):
        script = tools / name
        script.write_text(f"#!{sys.executable} -IS\n{text.format(world=str(tmp_path))}")
        script.chmod(0o755)
    keyring = tmp_path / "keyring"
    keyring.write_text("")
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    monkeypatch.setenv("VC4LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(packages, "KEYRINGS", (str(keyring),))
    monkeypatch.setattr(steps, "find_host_qemu", lambda: None)
    made = World(tmp_path, Brought("bookworm", tmp_path / "cache/drm/bookworm"))
    made.plan()
    return made
