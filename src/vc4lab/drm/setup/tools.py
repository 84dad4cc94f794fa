"""The host's programs apt-get and dpkg-deb. Their errors become one sentence."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence

from vc4lab.drm.setup.places import SetupFailed

NEEDED = ("apt-get", "dpkg-deb")
_FULL = ("No space left on device", "enough free space", "Disk quota exceeded")
_NOT_SIGNED = (
    "is not signed", "no longer signed", "NO_PUBKEY", "GPG error", "Hash Sum mismatch",
    "couldn't be verified", "could not be verified", "cannot be authenticated",
    "Signed-By", "unexpected size", "invalid for another", "is expired", "not valid yet",
)  # fmt: skip
_NO_NETWORK = (
    "Could not resolve", "Temporary failure resolving", "Could not connect", "Cannot initiate",
    "Unable to connect", "Network is unreachable", "Connection timed out", "Connection failed",
    "connection timed out", "Connection refused", "No route to host",
)  # fmt: skip
_CAUSES = {
    "no room": _FULL,
    "refused because of a wrong signature or checksum": _NOT_SIGNED,
    "no connection": _NO_NETWORK,
}
"""Meanings of a tool's words; the first that it used counts."""


_VIRTUAL = re.compile(r"^Package (\S+) is a virtual package provided by:\n((?:  \S+ .*\n)+)", re.MULTILINE)
"""apt-get's words on standard output for a name that packages share."""
MOST_PROVIDERS = 6


def environment() -> dict[str, str]:
    """The environment of a tool: its messages in English."""
    return {**os.environ, "LC_ALL": "C", "LANGUAGE": "C"}


def run_tool(command: Sequence[str]) -> str:
    """Run a tool and give what it prints. Raises SetupFailed."""
    try:
        result = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            env=environment(), check=False,
        )  # fmt: skip
    except OSError as error:
        raise SetupFailed(f"{command[0]}: {(error.strerror or '').lower()}") from None
    if result.returncode:
        virtual = _VIRTUAL.search(result.stdout)
        if virtual is not None:
            providers = re.findall(r"^  (\S+) ", virtual[2], re.MULTILINE)[:MOST_PROVIDERS]
            raise SetupFailed(
                f"{virtual[1]} is a virtual package; name one that provides it: {', '.join(providers)}"
            )
        raise tool_failed(command[0], result.stderr)
    return result.stdout


def tool_failed(name: str, text: str) -> SetupFailed:
    """An error made of what a tool said."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("E:", "Err:"))] or lines
    notes = [line for line in lines if line.startswith(("E:", "W:", "Err:"))] or lines
    for what, words in _CAUSES.items():
        first = next((n for n in notes + lines if any(word in n for word in words)), None)
        if first is not None:
            return SetupFailed(f"{what}: {_bare(first)}", output=words is _FULL)
    return SetupFailed(f"{name}: {_bare(errors[0]) if errors else 'failed without a message'}")


def _bare(line: str) -> str:
    for start in ("E: ", "W: "):
        line = line.removeprefix(start)
    return line
