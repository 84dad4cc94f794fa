"""The ioctls that every DRM device has: version, names, rights, capabilities."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from vc4lab.drm.objects.files import OpenFile
from vc4lab.drm.objects.masters import Master
from vc4lab.drm.uapi.ioctls import Call, ioctl
from vc4lab.drm.uapi.results import Refused, invalid

CAPABILITIES = {
    0x1: 1,  # dumb buffers
    0x2: 0,  # vblank: high CRTC numbers
    0x3: 24,  # preferred depth of a dumb buffer
    0x4: 0,  # prefer a shadow of a dumb buffer
    0x5: 3,  # PRIME: import and export
    0x6: 1,  # monotonic time stamps
    0x7: 1,  # page flips without waiting for vblank
    0x8: 64,  # width of the cursor
    0x9: 64,  # height of the cursor
    0x10: 1,  # frame buffers with modifiers
    0x11: 0,  # page flips with a target
    0x12: 1,  # the CRTC's number in vblank events
    0x13: 1,  # sync objects
    0x14: 0,  # timelines of sync objects
    0x15: 0,  # page flips without waiting, atomic
}
CLIENT_CAPABILITIES = {1: 1, 2: 1, 3: 2, 4: 1}
"""Stereo 3D, universal planes, atomic, aspect ratio: the highest value of each."""
UNIVERSAL_PLANES, ATOMIC = 2, 3
INTERFACE = (1, 4)
SYS_ADMIN = 21
"""The capability of an administrator."""
OVERFLOW_USER = 65534


@dataclass(eq=False)
class Core:
    """Ioctls about the device itself and about which file may show pictures."""

    texts: tuple[str, str, str]
    """Name, date, description."""
    unique: str
    number: tuple[int, int, int]
    """The driver's version."""
    capabilities: Mapping[int, int]
    master: Master | None = None
    """Who has the display."""
    files: list[OpenFile] = field(default_factory=list)
    bury: Callable[[], None] = lambda: None
    """Releases what programs held that have ended."""
    lease_ended: Callable[[], None] = lambda: None
    """Called when the last file of a lease is gone."""

    # -- identity ----------------------------------------------------------------------------------

    @ioctl(
        0x00, "VERSION",
        "i32 major, i32 minor, i32 patch, u64 name_len, u64 name, u64 date_len, u64 date, "
        "u64 desc_len, u64 desc",
        render=True,
    )  # fmt: skip
    def version(self, call: Call) -> None:
        a = call.args
        a.major, a.minor, a.patch = self.number
        for name, text in zip(("name", "date", "desc"), self.texts, strict=True):
            self._text(call, name, text)

    def _text(self, call: Call, name: str, text: str) -> None:
        room, place = getattr(call.args, f"{name}_len"), getattr(call.args, name)
        if room and place:
            call.write(place, text.encode()[:room])
        setattr(call.args, f"{name}_len", len(text))

    @ioctl(0x01, "GET_UNIQUE", "u64 unique_len, u64 unique")
    def get_unique(self, call: Call) -> None:
        text = self.unique if call.file.has_interface_version else ""
        if call.args.unique_len >= len(text):
            self._text(call, "unique", text)
        call.args.unique_len = len(text)

    @ioctl(
        0x05, "GET_CLIENT",
        "i32 idx, i32 auth, u64 pid, u64 uid, u64 magic, u64 iocs",
    )  # fmt: skip
    def get_client(self, call: Call) -> None:
        if call.args.idx:
            raise invalid()
        call.args.auth = int(call.file.is_authenticated)
        call.args.pid = call.task.tid
        call.args.uid = OVERFLOW_USER
        call.args.magic = call.args.iocs = 0

    @ioctl(0x06, "GET_STATS", "u64 count, char[240] data", direction=2)
    def get_stats(self, call: Call) -> None:
        """Nothing is counted any more; the answer is empty."""

    @ioctl(
        0x07, "SET_VERSION",
        "i32 drm_di_major, i32 drm_di_minor, i32 drm_dd_major, i32 drm_dd_minor",
        master=True,
    )  # fmt: skip
    def set_version(self, call: Call) -> None:
        a = call.args
        asked, driver = (a.drm_di_major, a.drm_di_minor), (a.drm_dd_major, a.drm_dd_minor)
        a.drm_di_major, a.drm_di_minor = INTERFACE
        a.drm_dd_major, a.drm_dd_minor = self.number[:2]
        if asked[0] != -1:
            if asked[0] != INTERFACE[0] or not 0 <= asked[1] <= INTERFACE[1]:
                raise invalid(f"interface {asked}")
            call.file.has_interface_version = True
        if driver[0] != -1 and driver != self.number[:2]:
            raise invalid(f"driver version {driver}")

    # -- rights ------------------------------------------------------------------------------------

    @ioctl(0x02, "GET_MAGIC", "u32 magic", direction=2)
    def get_magic(self, call: Call) -> None:
        file = call.file
        if not file.magic and file.master is not None:
            file.magic = file.master.clients.add(file)
        call.args.magic = file.magic

    @ioctl(0x11, "AUTH_MAGIC", "u32 magic", direction=1, master=True)
    def auth_magic(self, call: Call) -> None:
        master = call.file.master
        file = master.clients.objects.get(call.args.magic) if master is not None else None
        if file is None or file.was_let_in:
            raise invalid(f"no client of this master has the number {call.args.magic}")
        file.is_authenticated = file.was_let_in = True

    @ioctl(0x1E, "SET_MASTER", "", direction=0)
    def set_master(self, call: Call) -> None:
        self._check_right(call)
        if call.file.is_master:
            return
        if self.master is not None:
            self.bury()
        if self.master is not None:
            raise Refused(errno.EBUSY, "another file has the display")
        if not call.file.owns_master:
            self.make_master(call.file)
        elif call.file.master is None or call.file.master.lessor is not None:
            raise invalid("a lease cannot take the display")
        else:
            self._give_display(call.file.master)

    @ioctl(0x1F, "DROP_MASTER", "", direction=0)
    def drop_master(self, call: Call) -> None:
        self._check_right(call)
        if not call.file.is_master:
            raise invalid("this file does not have the display")
        if call.file.master is not self.master:
            raise invalid("a lease cannot give the display away")
        self._give_display(None)

    def _check_right(self, call: Call) -> None:
        """Only the process that once had the display with the file, or an administrator."""
        file, caller = call.file, call.task
        if not (file.was_master and caller.process == file.process) and not caller.may(SYS_ADMIN):
            raise Refused(errno.EACCES, "neither the display's former owner nor an administrator")

    def make_master(self, file: OpenFile) -> None:
        """The file has the display from now on."""
        file.master = Master()
        file.owns_master = file.was_master = file.is_authenticated = True
        self._give_display(file.master)

    def _give_display(self, master: Master | None) -> None:
        if self.master is not None:
            self.master.is_current = False
        self.master = master
        if master is not None:
            master.is_current = True

    def opened(self, file: OpenFile) -> None:
        """A node was opened: the first file of a card has the display."""
        self.files.append(file)
        if file.is_render:
            return
        if self.master is None:
            self.make_master(file)
        else:
            file.master = self.master

    def leased(self, file: OpenFile, lease: Master) -> None:
        """A file that has what was leased."""
        self.files.append(file)
        file.master = lease
        file.owns_master = file.is_authenticated = True

    def released(self, file: OpenFile) -> None:
        """A file is gone."""
        self.files.remove(file)
        master = file.master
        if master is None:
            return
        if master.clients.objects.get(file.magic) is file:
            master.clients.remove(file.magic)
        if file.owns_master:
            if self.master is master:
                self._give_display(None)
            master.revoke()
        if not any(other.master is master for other in self.files) and master.end():
            self.lease_ended()

    # -- capabilities ------------------------------------------------------------------------------

    @ioctl(0x0C, "GET_CAP", "u64 capability, u64 value", render=True)
    def get_cap(self, call: Call) -> None:
        if call.args.capability not in self.capabilities:
            raise invalid(f"capability {call.args.capability}")
        call.args.value = self.capabilities[call.args.capability]

    @ioctl(0x0D, "SET_CLIENT_CAP", "u64 capability, u64 value", direction=1)
    def set_client_cap(self, call: Call) -> None:
        a = call.args
        if a.value > CLIENT_CAPABILITIES.get(a.capability, -1):
            raise invalid(f"client capability {a.capability} = {a.value}")
        call.file.client_caps[a.capability] = a.value
        if a.capability == ATOMIC:
            call.file.client_caps[UNIVERSAL_PLANES] = int(bool(a.value))
