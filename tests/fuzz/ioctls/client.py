# ruff: noqa
# runs after the prelude `CLIENT`, in processes without the package
"""What hostile programs do; `runner.py` starts this under the device, after `CLIENT`.

The first process is the parent of all others: it starts them, kills them anywhere and counts. Each
of them has threads that race on the same descriptors. Bytes of their own are marked:
another's mark, when it is found, is a leak.
"""

import faulthandler
import json
import random
import socket

EDGES = [0, 1, 2, 3, 4, 7, 8, 16, 63, 255, 256, 4095, 4096, 65535, 65536, 1 << 20, 1 << 31]
EDGES += [(1 << 32) - 1, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
ARENA = 1 << 16
MARK = b"SECRET"
SLOTS = 64
"""Processes at a time, at most; each has a mark and a counter of its own."""
KERNELS = {
    getattr(errno, name)
    for name in [
        "EPERM",
        "ENOENT",
        "EINTR",
        "EAGAIN",
        "ENOMEM",
        "EACCES",
        "EFAULT",
        "EBUSY",
        "EEXIST",
        "ENODEV",
        "EINVAL",
        "ENFILE",
        "EMFILE",
        "ENOTTY",
        "ENOSPC",
        "ERANGE",
        "EDEADLK",
        "EOPNOTSUPP",
        "ETIME",
        "ETIMEDOUT",
        "EBADF",
        "ESPIPE",
    ]
}
BLOCKING = {0x41, 0x42, 0x3A, 0xC3, 0xCA}
"""WAIT_SEQNO, WAIT_BO, WAIT_VBLANK, SYNCOBJ_WAIT and its timeline kin."""
SUBMIT, MMAP_BO, CREATE_BO = 0x40, 0x44, 0x43
libc = ctypes.CDLL(None, use_errno=True)
libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong]
libc.mmap.restype = ctypes.c_size_t
libc.mmap.argtypes = [
    ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_uint64,
]  # fmt: skip
libc.munmap.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
NOWHERE = (1 << 64) - 1


class Leak(Exception):
    """Bytes of another process."""


class Hostile:
    """One hostile process."""

    def __init__(self, slot, serial, seed, job, numbers, post, counts):
        self.slot, self.seed, self.job, self.numbers, self.post = slot, seed, job, numbers, post
        self.counts = counts
        self.mark = MARK + bytes([33 + serial % 90, 33 + serial // 90 % 90])
        self.files = []
        self.own = []
        """(file, handle, size, address of its map): never shared, so never another's bytes."""
        self.fault = None
        self.lock = threading.Lock()

    def check(self, data, where):
        """Raises Leak for another's mark."""
        place = data.find(MARK)
        while place >= 0:
            if data[place : place + 8] != self.mark and len(data) >= place + 8:
                raise Leak(f"{where}: {data[place : place + 8]!r} at {place}, I am {self.mark!r}")
            place = data.find(MARK, place + 8)

    def run(self, steps, threads):
        """Until all threads have made so many steps."""
        for name in ("card0", "renderD128", "card0"):
            self.files.append(open_card(name))
        pool = [threading.Thread(target=self.race, args=(n, steps)) for n in range(1, threads)]
        for thread in pool:
            thread.start()
        self.race(0, steps)
        for thread in pool:
            thread.join()
        if self.fault is not None:
            raise self.fault

    def race(self, thread, steps):
        """One thread."""
        dice = random.Random(f"{self.seed}:{self.slot}:{thread}")
        held, base = buffer(bytes(ARENA + (1 << 14)))  # all of an argument comes back, as in Linux
        alarm = thread == 0
        if alarm:
            signal.signal(signal.SIGALRM, lambda *_: None)
            signal.siginterrupt(signal.SIGALRM, True)
        acts = (self.random_ioctl, self.buffer_life, self.wild_map, self.submit, self.descriptors,
                self.pass_on, self.display)  # fmt: skip
        weights = (80, 8, 4, 3, 2, 1.5, 1.5)
        try:
            for act in dice.choices(acts, weights, k=steps):
                try:
                    act(dice, base, alarm)
                except OSError as error:
                    if error.errno not in KERNELS:
                        raise
                except ValueError as error:  # its number is of another thread's dma-buf by now
                    if "mmap length" not in str(error):
                        raise
                if self.fault is not None:
                    return
        except Exception as error:
            self.fault = error

    def count(self):
        """Its own word, so no lock; threads of one process may lose one now and then."""
        self.counts[self.slot] += 1

    def word(self, dice, base):
        """A value that is wrong in an interesting way."""
        return dice.choice(
            [dice.choice(EDGES), base + dice.randrange(ARENA), dice.randrange(40), NOWHERE - 4096]
        )

    def ioctl(self, nr, place, size, direction, dice, alarm):
        """One call: its result, negative for an errno, which must be one of the kernel's."""
        timed = nr in BLOCKING and alarm
        if timed:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
        ctypes.set_errno(0)
        result = libc.ioctl(dice.choice(self.files), number(nr, size, direction), place)
        wrong = ctypes.get_errno() if result < 0 else 0
        if timed:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.count()
        if wrong and wrong not in KERNELS:
            raise AssertionError(f"ioctl 0x{nr:02x}: {errno.errorcode.get(wrong, wrong)}")
        return -wrong if wrong else result

    # -- acts --------------------------------------------------------------------------------------

    def random_ioctl(self, dice, base, alarm):
        nr, right = dice.choice(self.numbers)
        if dice.random() < 0.03:
            nr = dice.randrange(256)
        if nr in BLOCKING and not alarm:
            return
        size = right if dice.random() < 0.7 else dice.choice([0, 1, 4, 8, 24, 104, 176, 4096, 16383])
        words = [self.word(dice, base) for _ in range(max(size, 8) // 8 + 1 if size < 300 else 20)]
        for place, word in enumerate(words):
            if dice.random() < 0.5:
                words[place] = dice.randrange(16) | dice.choice(EDGES[:12]) << 32
        data = struct.pack(f"<{len(words)}Q", *words)
        place = base + dice.randrange(0, ARENA - 4096)
        if dice.random() < 0.04:
            place = self.word(dice, base)
        else:
            ctypes.memmove(place, data, len(data))
        direction = 3 if dice.random() < 0.9 else dice.randrange(4)
        result = self.ioctl(nr, place, size, direction, dice, alarm)
        if result >= 0 and base <= place < base + ARENA:
            self.check(ctypes.string_at(place, min(max(size, 1), 4096)), f"ioctl 0x{nr:02x}")

    def buffer_life(self, dice, base, alarm):
        if self.own and dice.random() < 0.5:
            with self.lock:
                if not self.own:
                    return
                fd, handle, size, place = self.own.pop(dice.randrange(len(self.own)))
            self.check(ctypes.string_at(place, size), "a buffer of mine")
            if dice.random() < 0.5:
                libc.munmap(place, size)
                refused(fd, 0x09, "II", handle, 0)
            else:  # the mapping keeps the memory
                refused(fd, 0x09, "II", handle, 0)
                self.check(ctypes.string_at(place, size), "a closed buffer of mine")
                libc.munmap(place, size)
            self.count()
            return
        fd = open_card("renderD128")  # of its own: its handles cannot be guessed
        try:
            size = 4096 * dice.choice([1, 1, 2, 3, 8, 64])
            handle = create_bo(fd, size)
            offset = ioctl(fd, MMAP_BO, "IIQ", handle, 0, 0)[2]
            place = libc.mmap(0, size, 3, 1, fd, offset)
            if place == NOWHERE:
                raise OSError(ctypes.get_errno() or errno.ENOMEM, "mmap")
            data = ctypes.string_at(place, size)
            if data.count(0) != size:
                raise Leak(f"a new buffer of {size} bytes is not zero: {data.strip(bytes(1))[:64]!r}")
            ctypes.memmove(place, self.mark * (size // 8), size)
            with self.lock:
                self.own.append((os.dup(fd), handle, size, place))
                if len(self.own) > 12:
                    old, _, size, place = self.own.pop(0)
                    libc.munmap(place, size)
                    os.close(old)
        finally:
            os.close(fd)
        self.count()

    def wild_map(self, dice, base, alarm):
        offset = dice.choice([dice.choice(EDGES[:18]) & ~4095, dice.randrange(1 << 18) << 12])
        if self.own and dice.random() < 0.5:  # what I know of: not through another file
            offset = ioctl(self.own[0][0], MMAP_BO, "IIQ", self.own[0][1], 0, 0)[2]
        size = dice.choice([1, 4096, 8192, 1 << 20, 1 << 30])
        place = libc.mmap(0, size, dice.choice([1, 3]), dice.choice([1, 1, 2]),
                          dice.choice(self.files), offset)  # fmt: skip
        self.count()
        if place != NOWHERE:
            self.check(ctypes.string_at(place, min(size, 4096)), f"mmap at 0x{offset:x}")
            libc.munmap(place, size)

    def submit(self, dice, base, alarm):
        """A job that is right but for some bytes, or right."""
        job = self.job
        fd = open_card("renderD128")
        try:
            handles = []
            for entry in job["buffers"]:
                data = bytes.fromhex(entry["data"])
                if entry["shader"]:
                    if dice.random() < 0.2:
                        data = self.bent(dice, data)
                    held, place = buffer(data)
                    handles.append(ioctl(fd, 0x45, "IIQII", len(data), 0, place, 0, 0)[3])
                else:
                    handle = create_bo(fd, entry["size"])
                    view = map_bo(fd, handle, entry["size"])
                    view[: len(data)] = data
                    view.close()
                    handles.append(handle)
            streams = [bytes.fromhex(job[name]) for name in ("bin_cl", "shader_rec", "uniforms")]
            bend = dice.random()
            if bend < 0.6:
                which = dice.randrange(3)
                streams[which] = self.bent(dice, streams[which])
            held = [buffer(stream) for stream in streams]
            packed, places = buffer(struct.pack(f"<{len(handles)}I", *handles))
            data = bytearray.fromhex(job["submit"])
            struct.pack_into("<QQQQ", data, 0, *[place for _, place in held], places)
            if bend > 0.8:
                data = bytearray(self.bent(dice, bytes(data), 32))
            argument, place = buffer(data)
            ctypes.set_errno(0)
            if libc.ioctl(fd, number(SUBMIT, 176), place) < 0:
                if ctypes.get_errno() not in KERNELS:
                    raise AssertionError(f"SUBMIT_CL: {ctypes.get_errno()}")
            elif dice.random() < 0.7:
                refused(fd, 0x41, "QQ", struct.unpack_from("<Q", argument.raw, 152)[0], 10**9)
            for entry, handle in zip(job["buffers"], handles):
                if not entry["shader"]:
                    view = map_bo(fd, handle, entry["size"])
                    self.check(view[:], "a job's buffer")
                    view.close()
        finally:
            self.count()
            os.close(fd)

    def bent(self, dice, data, first=0):
        """Some bytes changed."""
        data = bytearray(data)
        for _ in range(dice.choice([1, 1, 2, 5])):
            if len(data) > first:
                place = dice.randrange(first, len(data))
                data[place] = dice.choice([0, 0xFF, data[place] ^ 1 << dice.randrange(8)])
        return bytes(data)

    def descriptors(self, dice, base, alarm):
        """Closed, copied and opened again while other threads use them."""
        place = dice.randrange(len(self.files))
        old = self.files[place]
        kind = dice.randrange(4)
        if kind == 0:
            os.close(old)
            self.files[place] = open_card(dice.choice(["card0", "renderD128"]))
        elif kind == 1:
            self.files[place] = os.dup(old)
            os.close(old)
        elif kind == 2:
            other = fcntl.fcntl(old, fcntl.F_DUPFD_CLOEXEC, 0)
            os.dup2(other, old)
            os.close(other)
        else:
            self.count()
            os.set_blocking(old, False)
            try:
                self.check(os.read(old, dice.choice([1, 31, 32, 1024])), "events")
            finally:
                os.set_blocking(old, True)
        self.count()

    def pass_on(self, dice, base, alarm):
        """A descriptor to others, or one of theirs: used once and dropped."""
        if dice.random() < 0.5:
            given = dice.choice(self.files)
            if dice.random() < 0.5:
                handle = create_bo(given, 8192)
                given = ioctl(given, 0x2D, "IIi", handle, os.O_CLOEXEC | os.O_RDWR, 0)[2]
                os.lseek(given, 0, os.SEEK_END)
            try:
                socket.send_fds(self.post[0], [b"f"], [given], socket.MSG_DONTWAIT)
            finally:
                if given not in self.files:
                    os.close(given)
        else:
            _, found, _, _ = socket.recv_fds(self.post[1], 1, 4, socket.MSG_DONTWAIT)
            for fd in found:
                try:
                    refused(fd, CREATE_BO, "IIII", 4096, 0, 0, 0)
                    refused(fd, 0x09, "II", dice.randrange(12), 0)
                    refused(dice.choice(self.files), 0x2E, "IIi", 0, 0, fd)
                finally:
                    os.close(fd)
        self.count()

    def display(self, dice, base, alarm):
        """Modes, frame buffers and properties that make no sense."""
        fd = self.files[0]
        kind = dice.randrange(4)
        if kind == 0:
            show(fd)
        elif kind == 1:
            sides = [dice.choice([0, 1, 63, 4096, 65535, 1 << 20, (1 << 32) - 1]) for _ in range(3)]
            handle = refused(fd, 0xB2, "IIIIIIQ", *sides[:2], dice.choice([0, 8, 32, 99]), 0, 0, 0, 0)
            refused(fd, 0xAE, "IIIIIII", 0, *sides, 32, 24, dice.randrange(8))
        elif kind == 2:
            crtc, connector, _ = resources(fd)
            mode = list(modes(fd, connector)[0])
            for _ in range(3):
                place = dice.randrange(13)
                mode[place] = dice.choice([0, 1, 255, 65535]) % (1 << 16)
            held, place = buffer(struct.pack("<I", connector))
            refused(fd, 0xA2, "QIIIIIII" + MODE, place, 1, crtc, dice.randrange(60),
                    dice.choice(EDGES[:12]), 0, 0, 1, *mode)  # fmt: skip
        else:
            ids, counts = ([dice.randrange(64) for _ in range(4)], [dice.randrange(5) for _ in range(4)])
            values = [dice.choice(EDGES) for _ in range(20)]
            held = [
                buffer(struct.pack("<4I", *ids)), buffer(struct.pack("<4I", *counts)),
                buffer(struct.pack("<20I", *[dice.randrange(80) for _ in range(20)])),
                buffer(struct.pack("<20Q", *values)),
            ]  # fmt: skip
            refused(fd, 0x0D, "QQ", 3, 1, direction=1)
            refused(fd, 0xBC, "IIQQQQQQ", dice.choice([0, 0x100, 0x401, 1, 0x200]), 4,
                    *[place for _, place in held], 0, 7)  # fmt: skip
        self.count()


def main():
    """The parent: starts, kills and counts."""
    with open(sys.argv[1]) as file:
        plan = json.load(file)
    dice = random.Random(plan["seed"])
    shared = mmap.mmap(-1, 8 * (SLOTS + 1))
    counts = memoryview(shared).cast("Q")
    post = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    running, faults, total, killed, serial = {}, [], 0, 0, 0
    report, report_end = os.pipe()
    os.set_blocking(report, False)
    while (total + sum(counts) < plan["count"] or running) and not faults:
        enough = total + sum(counts) >= plan["count"]
        while len(running) < plan["clients"] and not enough:
            slot = next(n for n in range(SLOTS) if n not in running.values())
            serial += 1
            total += counts[slot]
            counts[slot] = 0
            child = os.fork()
            if not child:
                code = 1
                faulthandler.enable(report_end)  # SIGBUS and SIGSEGV come with their place
                try:
                    hostile = Hostile(slot, serial, f"{plan['seed']}:{serial}", plan["job"],
                                      plan["numbers"], post, counts)  # fmt: skip
                    hostile.run(plan["steps"], plan["threads"])
                    code = 0
                except OSError as error:  # the first opens, before all is lost
                    code = 0 if error.errno in KERNELS else 1
                    text = repr(error)
                except BaseException as error:
                    import traceback

                    text = f"{error!r}\n{traceback.format_exc()}"
                if code:
                    os.write(report_end, text.encode()[:4000])
                os._exit(code)
            running[child] = slot
        if dice.random() < plan["kills"] and running:
            os.kill(dice.choice(list(running)), signal.SIGKILL)
            killed += 1
        time.sleep(dice.random() * 0.02)
        while running:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                break
            slot = running.pop(child)
            if status and status != signal.SIGKILL:
                try:
                    text = os.read(report, 65536).decode()
                except OSError:
                    text = ""
                faults.append(f"process {serial}, status {status}: {text}")
    for child in running:
        os.kill(child, signal.SIGKILL)
    print(json.dumps({"ioctls": total + sum(counts), "processes": serial, "killed": killed,
                      "faults": faults}))  # fmt: skip
    sys.stdout.flush()
    os._exit(0)


main()
