# ruff: noqa: F821, PT017, RUF059 - clients are other programs
"""Leases: what a lessee sees and may do, what its lessor takes back; who has the display."""

from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice

LEASES = '''
def lease(fd, *objects, flags=0):
    """lessee's number, descriptor"""
    held, place = buffer(struct.pack(f"<{len(objects)}I", *objects) or bytes(4))
    return ioctl(fd, 0xC6, "QIIII", place, len(objects), flags, 0, 0)[3:]

def no_lease(fd, *objects, flags=0):
    """the errno"""
    held, place = buffer(struct.pack(f"<{len(objects)}I", *objects) or bytes(4))
    return refused(fd, 0xC6, "QIIII", place, len(objects), flags, 0, 0)

def listed(fd, nr):
    """what LIST_LESSEES or GET_LEASE gives"""
    held, place = buffer(bytes(4 * 256))
    count = ioctl(fd, nr, "IIQ", 256, 0, place)[0]
    return list(struct.unpack_from(f"<{count}I", held.raw))

def planes(fd):
    held, place = buffer(bytes(64))
    count = ioctl(fd, 0xB5, "QI", place, 16)[1]
    return list(struct.unpack_from(f"<{count}I", held.raw))

def universal(fd):
    ioctl(fd, 0x0D, "QQ", 2, 1, direction=1)
'''


def test_a_lessee_has_what_was_leased_and_no_more(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        universal(fd)
        crtc, connector, encoder = resources(fd)
        primary, overlay, cursor = planes(fd)
        assert len(listed(fd, 0xC8)) > 10, "the owner has everything"
        number, other = lease(fd, crtc, connector, primary, overlay)
        assert number == 1
        assert listed(fd, 0xC7) == [1]
        universal(other)
        assert planes(other) == [primary, overlay]
        assert listed(other, 0xC8) == sorted([crtc, connector, primary, overlay])
        assert resources(other) == (crtc, connector, encoder)
        assert refused(other, 0xB6, "IIIIIIQ", cursor, 0, 0, 0, 0, 0, 0) == errno.ENOENT
        show(other)  # it is a master of these
        assert refused(other, 0xA3, "IIiiIII", 2, crtc, 1, 1, 0, 0, 0) == errno.EACCES  # cursor
        assert no_lease(other, crtc, connector, primary) == errno.EINVAL, "a lease of a lease"
        assert refused(other, 0x1F, "", direction=0) == errno.EINVAL
        assert no_lease(fd, crtc, connector, cursor) == errno.EBUSY
        ioctl(fd, 0xC9, "I", number)
        assert listed(other, 0xC8) == [] == planes(other)
        assert listed(fd, 0xC7) == []
        assert refused(other, 0xA1, "QIIIIIII" + MODE, 0, 0, crtc, *[0] * 19, b"") == errno.ENOENT
        again, third = lease(fd, crtc, connector, primary)
        assert again == 2
        os.close(other)
        os.close(third)
        for _ in range(6000):
            if not listed(fd, 0xC7) and lease(fd, crtc, connector, primary)[0] == 1:
                break
            time.sleep(0.01)
        else:
            raise AssertionError("the lease never ended")

    run_client(device, client, helpers=LEASES)


def test_leases_that_cannot_be(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        crtc, connector, encoder = resources(fd)
        assert no_lease(fd, crtc, connector, 4000) == errno.ENOENT
        assert no_lease(fd, crtc, connector, encoder) == errno.EINVAL
        assert no_lease(fd, crtc) == errno.EINVAL
        assert no_lease(fd, crtc, connector, flags=1) == errno.EINVAL
        assert refused(fd, 0xC6, "QIIII", 8, 3, 0, 0, 0) == errno.EFAULT
        assert refused(fd, 0xC7, "IIQ", 0, 1, 0) == errno.EINVAL
        assert refused(fd, 0xC8, "IIQ", 0, 1, 0) == errno.EINVAL
        assert refused(fd, 0xC9, "I", 9) == errno.ENOENT
        other = open_card()
        assert no_lease(other, crtc, connector) == errno.EACCES, "it has nothing to lease"
        number, empty = lease(fd)
        assert (listed(empty, 0xC8), listed(fd, 0xC7)) == ([], [])
        universal(fd)
        assert no_lease(fd, crtc, connector) == errno.EINVAL, "and a plane"
        primary, _, cursor = planes(fd)
        assert no_lease(fd, crtc, crtc, connector, primary) == errno.ENOSPC

        plain = open_card()
        os.close(fd)
        os.close(other)
        for _ in range(6000):
            if not refused(plain, 0x1E, "", direction=0):
                break
            time.sleep(0.01)
        _, theirs = lease(plain, crtc, connector)  # without universal planes: the CRTC's own, too
        assert {primary, cursor} < set(listed(theirs, 0xC8))

    run_client(device, client, helpers=LEASES)


def test_a_lessee_has_the_display_while_its_lessor_has(device: DrmDevice) -> None:
    def client() -> None:
        fd, other = open_card(), open_card()
        crtc, connector, _ = resources(fd)
        _, lent = lease(fd, crtc, connector)
        assert refused(lent, 0x1E, "", direction=0) == 0, "it is a master"
        ioctl(fd, 0x1F, "", direction=0)
        assert refused(lent, 0xC8, "IIQ", 0, 0, 0) == errno.EACCES
        assert refused(lent, 0x1E, "", direction=0) == errno.EINVAL
        if os.geteuid() == 0:
            ioctl(other, 0x1E, "", direction=0)
            assert refused(lent, 0xC8, "IIQ", 0, 0, 0) == errno.EACCES
            lease(other, crtc, connector)  # of another master: nothing is leased there
            ioctl(other, 0x1F, "", direction=0)
        ioctl(fd, 0x1E, "", direction=0)
        assert crtc in listed(lent, 0xC8)

    run_client(device, client, helpers=LEASES)


def test_clients_belong_to_the_master_at_whose_time_they_came(device: DrmDevice) -> None:
    def client() -> None:
        fd, client, other = open_card(), open_card(), open_card()
        magic = ioctl(client, 0x02, "I", 0, direction=2)[0]
        if os.geteuid():
            assert refused(other, 0x1E, "", direction=0) == errno.EACCES, "it never had the display"
            return
        ioctl(fd, 0x1F, "", direction=0)
        ioctl(other, 0x1E, "", direction=0)
        assert refused(other, 0x11, "I", magic, direction=1) == errno.EINVAL
        ioctl(other, 0x1F, "", direction=0)
        ioctl(fd, 0x1E, "", direction=0)
        ioctl(fd, 0x11, "I", magic, direction=1)
        assert refused(fd, 0x11, "I", magic, direction=1) == errno.EINVAL, "once"
        assert ioctl(client, 0x02, "I", 0, direction=2)[0] == magic

        if os.fork() == 0:  # another user: only what had the display, and only in the same process
            os.setgid(65534)
            os.setuid(65534)
            assert refused(fd, 0x1F, "", direction=0) == errno.EACCES
            mine = open_card()
            assert refused(mine, 0x1E, "", direction=0) == errno.EACCES
            assert refused(mine, 0x0A, "II", create_bo(mine, 4096), 0) == errno.EACCES
            magic = ioctl(mine, 0x02, "I", 0, direction=2)[0]
            ioctl(fd, 0x11, "I", magic, direction=1)
            assert ioctl(mine, 0x0A, "II", 1, 0)[1]
            os._exit(0)
        assert os.wait()[1] == 0

    run_client(device, client)


def test_modes_of_nodes(device: DrmDevice) -> None:
    def client() -> None:
        place = "/dev/dri/card0"
        fd = open_card()
        for found in (os.stat(place), os.fstat(fd)):
            assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o666, 0, 0)
        if os.geteuid():
            for change in (lambda: os.chmod(place, 0o600), lambda: os.fchmod(fd, 0o600)):
                try:
                    change()
                except OSError as error:
                    assert error.errno == errno.EPERM
                else:
                    raise AssertionError("anyone may change the mode")
            return
        os.chmod(place, 0o640)
        os.chown(place, -1, 44)
        found = os.fstat(fd)
        assert (stat.S_IMODE(found.st_mode), found.st_gid) == (0o640, 44)
        assert not os.access(place, os.X_OK)
        for groups, modes in (([], ()), ([44], (os.O_RDONLY,)), ([], ())):
            if os.fork() == 0:
                os.setgroups(groups)
                os.setgid(1000)
                os.setuid(1000)
                for mode in (os.O_RDONLY, os.O_RDWR):
                    try:
                        os.close(os.open(place, mode))
                        assert mode in modes, (groups, mode)
                    except OSError as error:
                        assert error.errno == errno.EACCES
                        assert mode not in modes, (groups, mode)
                os._exit(0)
            assert os.wait()[1] == 0
        os.fchmod(fd, 0o666)
        os.fchown(fd, 0, 0)
        assert stat.S_IMODE(os.stat(place).st_mode) == 0o666
        dma = export(fd, create_bo(fd, 4096))
        try:
            os.fchmod(dma, 0)
        except OSError as error:
            assert error.errno == errno.EPERM

    run_client(device, client)
