"""Device events as libudev's monitor gets them: netlink sockets that hear this device alone."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

HUB = Path(__file__).with_name("uevent_hub.py")
_KINDS = socket.SOCK_RAW, socket.SOCK_DGRAM
_HEADER = struct.Struct(">8sI")
_REST = struct.Struct("=III")
_HASHES = struct.Struct(">IIII")
_MAGIC = 0xFEEDCAFE
_HEADER_BYTES = 40
_PATIENCE = 10.0
_WORD = 0xFFFFFFFF


class Uevents:
    """Makes sockets for programs and sends events to all of them. From any thread."""

    def __init__(self) -> None:
        self._connection: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._possible = True
        self._number = 0

    def socket(self, kind: int) -> int | None:
        """A new socket's descriptor; None if there can be none here."""
        if kind & 0xF not in _KINDS:
            return None
        with self._lock:
            try:
                if self._connection is None and self._possible:
                    self._start()
                if self._connection is None:
                    return None
                self._connection.send(b"S" + struct.pack("<I", kind))
                data, descriptors, _, _ = socket.recv_fds(self._connection, 1, 1)
            except OSError:
                data, descriptors = b"", []
            if data and descriptors:
                return descriptors[0]
            self._possible = False
            self._stop()
            return None

    def send(self, properties: Mapping[str, str]) -> None:
        """Let the programs that listen hear of something that happened to a device."""
        with self._lock:
            if self._connection is None:
                return  # none listens
            self._number += 1
            try:
                self._connection.send(b"E" + message({**properties, "SEQNUM": str(self._number)}))
            except OSError:
                self._stop()

    def close(self) -> None:
        """End the hub."""
        with self._lock:
            self._stop()

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(HUB), str(theirs.fileno())],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        ours.settimeout(_PATIENCE)
        self._connection = ours

    def _stop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            self._process.wait()
            self._process = None


def message(properties: Mapping[str, str]) -> bytes:
    """An event as libudev's monitor reads it; SUBSYSTEM and DEVTYPE also for its filters."""
    body = b"".join(f"{name}={value}".encode() + b"\0" for name, value in properties.items())
    hashes = [
        text_hash(properties[name].encode()) if name in properties else 0 for name in ("SUBSYSTEM", "DEVTYPE")
    ]
    head = _HEADER.pack(b"libudev\0", _MAGIC)
    head += _REST.pack(_HEADER_BYTES, _HEADER_BYTES, len(body))
    return head + _HASHES.pack(*hashes, 0, 0) + body


def text_hash(data: bytes) -> int:
    """MurmurHash2 with seed 0, by which the kernel's filters of a monitor compare names."""
    factor = 0x5BD1E995
    value = len(data)
    whole = len(data) & ~3
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        mixed = word * factor & _WORD
        value = value * factor & _WORD ^ (mixed ^ mixed >> 24) * factor & _WORD
    if data[whole:]:
        value = (value ^ int.from_bytes(data[whole:], "little")) * factor & _WORD
    value = (value ^ value >> 13) * factor & _WORD
    return value ^ value >> 15


def card_changed(place: str, number: tuple[int, int], what: Mapping[str, int]) -> dict[str, str]:
    """The kernel's message when something has happened to a card at a path of sysfs: HOTPLUG of a
    CONNECTOR, or LEASE.
    """
    node = os.path.basename(place)
    return {
        "ACTION": "change", "DEVPATH": place.removeprefix("/sys"), "SUBSYSTEM": "drm",
        **{name: str(value) for name, value in what.items()}, "DEVNAME": f"/dev/dri/{node}",
        "DEVTYPE": "drm_minor", "MAJOR": str(number[0]), "MINOR": str(number[1]),
    }  # fmt: skip
