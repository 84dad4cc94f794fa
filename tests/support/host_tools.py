"""Programs and libraries of the host that some tests use: what is missing, and what to type."""

import ctypes.util
import re
import shutil
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "system-packages.sh"
LIBRARIES = {
    "EGL": "libegl1", "GLESv2": "libgles2", "drm": "libdrm2", "gbm": "libgbm1", "udev": "libudev1",
}  # fmt: skip
"""Debian's package of each library that a test loads."""


def installed_by() -> dict[str, tuple[str, str]]:
    """Debian's package of each program of the script's tables, and the command that installs it."""
    found: dict[str, tuple[str, str]] = {}
    for purpose, table in re.findall(
        r'^(\w+)\)\n\s+table="\n(.*?)"$', SCRIPT.read_text(), re.MULTILINE | re.DOTALL
    ):
        command = "sh tools/system-packages.sh" + (f" {purpose}" if purpose != "tests" else "")
        for line in table.split("\n"):
            if line.strip():
                program, package = line.split()
                found.setdefault(program, (package, command))
    return found


def why_missing(program: str) -> str:
    """Why a test without the program is skipped, and what installs it; "" if it is there."""
    package, command = installed_by()[program]  # also where it is there: no test without a row
    if shutil.which(program) is not None:
        return ""
    return f"{program} is not installed (Debian's package {package}): {command}"


def why_no_library(name: str) -> str:
    """The same for a shared library, by its name for the linker."""
    if ctypes.util.find_library(name) is not None:
        return ""
    return f"lib{name} is not installed: apt-get install {LIBRARIES[name]}"


def need(program: str) -> None:
    """Skips a test where a program is not installed."""
    reason = why_missing(program)
    if reason:
        pytest.skip(reason)


def needs(program: str) -> pytest.MarkDecorator:
    """The same for a whole test."""
    reason = why_missing(program)
    return pytest.mark.skipif(bool(reason), reason=reason)


def need_library(name: str) -> None:
    """Skips a test where a library is not installed."""
    reason = why_no_library(name)
    if reason:
        pytest.skip(reason)
