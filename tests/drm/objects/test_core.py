# ruff: noqa: F821, RUF059 - clients are other programs
"""Ioctls of every DRM device: identity, rights, capabilities, sync objects."""

from tests.support.drm_client import run_client

from vc4lab.drm.device.device import DrmDevice


def test_version_and_names(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        held, place = buffer(bytes(64))
        fmt = "iii4xQQQQQQ"
        lengths = ioctl(fd, 0x00, fmt, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        assert lengths[3::2] == (3, 8, 21)
        ioctl(fd, 0x00, fmt, 0, 0, 0, 3, place, 8, place + 8, 21, place + 16)
        assert held.raw[:3] == b"vc4"
        assert held.raw[8:16] == b"20140616"
        assert held.raw[16:37] == b"Broadcom VC4 graphics"
        assert ioctl(fd, 0x01, "QQ", 0, 0)[0] == 0
        ioctl(fd, 0x07, "iiii", 1, 4, -1, -1)
        assert ioctl(fd, 0x01, "QQ", 64, place)[0] == 7
        assert held.raw[:7] == b"soc:gpu"
        assert refused(fd, 0x00, fmt, 0, 0, 0, 3, 8, 0, 0, 0, 0) == errno.EFAULT

    run_client(device, client)


def test_one_file_has_the_display_and_lets_others_in(device: DrmDevice) -> None:
    def client() -> None:
        fd, other, render = open_card(), open_card(), open_card("renderD128")
        assert refused(other, 0x1E, "", direction=0) == errno.EBUSY
        magic = ioctl(other, 0x02, "I", 0, direction=2)[0]
        assert refused(other, 0x11, "I", magic, direction=1) == errno.EACCES
        ioctl(fd, 0x11, "I", magic, direction=1)
        assert refused(fd, 0x11, "I", 12345, direction=1) == errno.EINVAL
        assert refused(render, 0x1E, "", direction=0) == errno.EACCES
        assert refused(render, 0xA0, "QQQQIIIIIIII", *[0] * 12) == errno.EACCES
        ioctl(fd, 0x1F, "", direction=0)
        assert refused(fd, 0x1F, "", direction=0) == errno.EINVAL
        ioctl(other, 0x1E, "", direction=0)
        os.close(other)
        for _ in range(200):
            if not refused(fd, 0x1E, "", direction=0):
                break
            time.sleep(0.01)
        else:
            raise AssertionError("the display was never free again")

    run_client(device, client)


def test_capabilities_and_parameters(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card("renderD128")
        assert ioctl(fd, 0x0C, "QQ", 1, 0)[1] == 1
        assert refused(fd, 0x0C, "QQ", 0x99, 0) == errno.EINVAL
        values = [ioctl(fd, 0x47, "IIQ", n, 0, 0)[2] for n in (0, 1, 2, 3, 4, 5, 6, 7, 8)]
        assert values == [0x02443356, 0xC1102431, 0x121, 1, 1, 1, 1, 1, 1]
        assert refused(fd, 0x47, "IIQ", 9, 0, 0) == errno.EINVAL
        assert refused(fd, 0x47, "IIQ", 0, 1, 0) == errno.EINVAL
        assert refused(fd, 0x7F, "I", 0) == errno.EINVAL

    run_client(device, client)


def test_arguments_of_other_sizes_are_taken_as_the_kernel_takes_them(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card()
        assert ioctl(fd, 0x0C, "Q", 1) == (1,)
        assert ioctl(fd, 0x0C, "QQQQ", 1, 7, 8, 9) == (1, 1, 8, 9)
        for address in (0, 1, 0xDEAD0000, (1 << 64) - 8, (1 << 47) - 4):
            try:
                libc = ctypes.CDLL(None, use_errno=True)
                libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong]
                result = libc.ioctl(fd, number(0x0C, 16), address)
                assert (result, ctypes.get_errno()) == (-1, errno.EFAULT), hex(address)
            finally:
                pass

    run_client(device, client)


def test_an_answer_goes_only_to_memory_that_the_program_may_write(device: DrmDevice) -> None:
    """Read-only, without any rights, and at the border of both."""

    def client() -> None:
        fd = open_card("renderD128")
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        page = mmap.PAGESIZE
        held = mmap.mmap(-1, 2 * page, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        place = ctypes.addressof(ctypes.c_char.from_buffer(held))
        question = struct.pack("<QQ", 1, 77)
        for at in (0, page - 8):
            held[at : at + 16] = question
        assert libc.ioctl(fd, number(0x0C, 16), place) == 0
        assert held[8:16] != question[8:]
        held[:16] = question
        rights = mmap.PROT_READ | mmap.PROT_WRITE
        assert libc.mprotect(place, 2 * page, mmap.PROT_READ) == 0
        for at in (0, page - 8):
            assert libc.ioctl(fd, number(0x0C, 16), place + at) == -1
            assert ctypes.get_errno() == errno.EFAULT
        assert held[:16] == held[page - 8 : page + 8] == question
        assert libc.mprotect(place, page, rights) == 0
        assert libc.ioctl(fd, number(0x0C, 16), place) == 0
        assert libc.ioctl(fd, number(0x0C, 16), place + page - 8) == -1  # half of it
        assert ctypes.get_errno() == errno.EFAULT
        buffer_ = ioctl(fd, 0x43, "IIII", 4096, 0, 0, 0)[2]
        held[:8] = struct.pack("<II", buffer_, 0)
        assert libc.mprotect(place, page, mmap.PROT_READ) == 0
        close = 1 << 30 | 8 << 16 | ord("d") << 8 | 0x09  # has no answer
        assert libc.ioctl(fd, close, place) == 0

    run_client(device, client)


def test_a_question_comes_only_from_memory_that_the_program_may_read(device: DrmDevice) -> None:
    """Without any rights, at the border of that, and right after the rights have gone."""

    def client() -> None:
        fd = open_card("renderD128")
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        page = mmap.PAGESIZE
        held = mmap.mmap(-1, 2 * page, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        place = ctypes.addressof(ctypes.c_char.from_buffer(held))
        handles = [create_bo(fd, 4096) for _ in range(3)]
        close = 1 << 30 | 8 << 16 | ord("d") << 8 | 0x09  # has no answer
        for at, handle in zip((0, page - 4, page), handles, strict=True):
            held[at : at + 8] = struct.pack("<II", handle, 0)
            if at == 0:
                assert libc.ioctl(fd, close, place) == 0
        time.sleep(0.1)
        assert libc.mprotect(place + page, page, 0) == 0
        for at in (page - 4, page):
            assert libc.ioctl(fd, close, place + at) == -1
            assert ctypes.get_errno() == errno.EFAULT
        rights = mmap.PROT_READ | mmap.PROT_WRITE
        assert libc.mprotect(place + page, page, rights) == 0
        assert libc.ioctl(fd, close, place + page) == 0, "it was not closed before"
        # a path in such memory
        held[0:14] = b"/dev/dri/card0"
        libc.open.argtypes = [ctypes.c_void_p, ctypes.c_int]
        time.sleep(0.1)
        assert libc.mprotect(place, page, 0) == 0
        assert libc.open(place, os.O_RDWR) == -1
        assert ctypes.get_errno() == errno.EFAULT

    run_client(device, client)


def test_sync_objects_and_sync_files(device: DrmDevice) -> None:
    def client() -> None:
        fd, other = open_card("renderD128"), open_card("renderD128")
        handle = ioctl(fd, 0xBF, "II", 0, 0)[0]
        signaled = ioctl(fd, 0xBF, "II", 0, 1)[0]
        held, place = buffer(struct.pack("<II", handle, signaled))
        wait = "QqIIII"
        assert refused(fd, 0xC3, wait, place, 0, 1, 0, 0, 0) == errno.EINVAL
        assert refused(fd, 0xC3, wait, place, 0, 1, 2, 0, 0) == errno.ETIME
        assert ioctl(fd, 0xC3, wait, place, 0, 2, 2, 0, 0)[4] == 1
        soon = time.monotonic_ns() + 50_000_000
        assert refused(fd, 0xC3, wait, place, soon, 1, 2, 0, 0) == errno.ETIME
        assert time.monotonic_ns() >= soon
        late = time.monotonic_ns() + 10_000_000_000
        thread = threading.Timer(0.1, ioctl, [fd, 0xC5, "QII", place, 1, 0])
        thread.start()
        assert ioctl(fd, 0xC3, wait, place, late, 1, 2, 0, 0)[4] == 0
        thread.join()
        ioctl(fd, 0xC4, "QII", place, 1, 0)
        assert refused(fd, 0xC3, wait, place, 0, 1, 2, 0, 0) == errno.ETIME

        opaque = ioctl(fd, 0xC1, "IIiI", handle, 0, -1, 0)[2]
        theirs = ioctl(other, 0xC2, "IIiI", 0, 0, opaque, 0)[0]
        ioctl(fd, 0xC5, "QII", place, 1, 0)
        mine, there = buffer(struct.pack("<I", theirs))
        ioctl(other, 0xC3, wait, there, 0, 1, 0, 0, 0)

        file = ioctl(fd, 0xC1, "IIiI", signaled, 1, -1, 0)[2]
        poll = select.poll()
        poll.register(file, select.POLLIN)
        assert poll.poll(0)
        ioctl(other, 0xC2, "IIiI", theirs, 1, file, 0)
        data = bytearray(struct.pack("<32siiII", b"both", file, -1, 0, 0))
        fcntl.ioctl(file, 0xC0303E03, data)
        merged = struct.unpack("<32siiII", data)[2]
        info = bytearray(56)
        fcntl.ioctl(merged, 0xC0383E04, info)
        assert struct.unpack_from("<i", info, 32)[0] == 1
        assert refused(fd, 0xC0, "II", 99, 0) == errno.EINVAL
        assert refused(fd, 0xC1, "IIiI", 99, 0, -1, 0) == errno.EINVAL
        assert refused(fd, 0xC1, "IIiI", 99, 1, -1, 0) == errno.ENOENT
        assert refused(fd, 0xC2, "IIiI", 99, 1, file, 0) == errno.ENOENT
        assert refused(fd, 0xC2, "IIiI", handle, 1, 500, 0) == errno.EINVAL
        assert refused(fd, 0xC2, "IIiI", handle, 1, fd, 0) == errno.EINVAL

    run_client(device, client)


def test_traces_name_every_argument(device: DrmDevice) -> None:
    def client() -> None:
        fd = open_card("renderD128")
        create_bo(fd, 4096)
        refused(fd, 0x44, "IIQ", 5, 0, 0)

    lines: list[str] = []
    device.files.trace = lines.append
    run_client(device, client)
    text = "\n".join(lines)
    assert "renderD128: VC4_CREATE_BO(size=0x1000, flags=0, handle=1, pad=0) = 0" in text
    assert "= EINVAL (no buffer has handle 5)" in text


def test_arguments_come_back_with_errors(device: DrmDevice) -> None:
    """drm_ioctl of Linux copies the structure out whatever the call's answer is, and its EFAULT is
    then the answer."""

    def client() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong]
        libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        fd, other = open_card(), open_card("renderD128")
        memory = mmap.mmap(-1, mmap.PAGESIZE)
        place = ctypes.addressof(ctypes.c_char.from_buffer(memory))

        def call(nr, fmt, *values, file=fd, direction=3):
            """errno, and the structure after the call"""
            memory[: struct.calcsize("<" + fmt)] = struct.pack("<" + fmt, *values)
            wrong = libc.ioctl(file, number(nr, struct.calcsize("<" + fmt), direction), place)
            return (ctypes.get_errno() if wrong else 0), struct.unpack_from("<" + fmt, memory)

        def fixed(nr, fmt, *values, file=fd, direction=3):
            """errno of a call whose memory is read-only by then"""
            memory[: struct.calcsize("<" + fmt)] = struct.pack("<" + fmt, *values)
            assert libc.mprotect(place, mmap.PAGESIZE, mmap.PROT_READ) == 0
            wrong = libc.ioctl(file, number(nr, struct.calcsize("<" + fmt), direction), place)
            error = ctypes.get_errno() if wrong else 0
            assert libc.mprotect(place, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE) == 0
            return error

        handle = create_bo(fd, 4096)
        assert call(0x44, "IIQ", 99, 0, 7)[0] == errno.EINVAL
        # what the caller does not hand in counts as 0, and comes back as that
        assert call(0x44, "IIQ", handle, 0, 7, direction=2) == (errno.EINVAL, (0, 0, 0))
        # what it does not ask for stays
        assert call(0x44, "IIQ", handle, 0, 7, direction=1) == (0, (handle, 0, 7))
        # beyond the structure: as it was handed in, or 0
        assert call(0x44, "IIQQ", handle, 0, 7, 9)[1][3] == 9
        assert call(0x44, "IIQQ", handle, 0, 7, 9, direction=2) == (errno.EINVAL, (0, 0, 0, 0))
        # the EFAULT of copying out is the answer, of calls that failed or changed nothing as well
        assert fixed(0x44, "IIQ", 99, 0, 7) == errno.EFAULT
        assert fixed(0x42, "IIQ", handle, 0, 0) == errno.EFAULT
        assert fixed(0x42, "IIQ", handle, 0, 0, direction=1) == 0
        assert fixed(0x09, "II", handle, 0) == 0, "GEM_CLOSE only takes"
        # so it is of calls that the file may not make
        assert call(0xA0, "QQQQIIIIIIII", *[3] * 12, file=other) == (errno.EACCES, (3,) * 12)
        assert fixed(0xA0, "QQQQIIIIIIII", *[0] * 12, file=other) == errno.EFAULT
        assert refused(other, 0xA0, "QQQQIIIIIIII", *[0] * 12) == errno.EACCES
        del memory

    run_client(device, client)
