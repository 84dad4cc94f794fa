"""Triangle lists that end anywhere are drawn as the same triangles written out; records cut off."""

import random

import numpy as np
import pytest
from tests.support.compressed_lists import encode_compressed
from tests.support.frames import BACKGROUND, RED, Frame
from tests.support.jobs import CT1CA, CT1EA, nv_vertex, viewport
from tests.support.programs import GOURAUD

from vc4lab.memory import MEMORY_SIZE, GuestMemory
from vc4lab.records.control import build
from vc4lab.records.primitives import ListFormat, decode_compressed

TRIANGLES = 0x12
VERTICES = 60
PROGRAM = (
    GOURAUD
    + """
    nop ; nop ; sbwait
    mov tlbc, r3 ; nop ; thrend
    nop ; nop
    nop ; nop ; sbdone
"""
)


def triangles(rng: random.Random, count: int) -> list[tuple[int, ...]]:
    """Neighbours mostly, as meshes have them; now and then the same vertex twice or any vertex."""
    found: list[tuple[int, ...]] = [(0, 1, 2)]
    while len(found) < count:
        a, b, c = found[-1]
        kind = rng.random()
        if kind < 0.4:
            step = rng.choice((1, 1, 1, 3, -2))
            new = (a + step, b + step, c + step)
        elif kind < 0.75:
            new = rng.choice(((b, c, rng.randrange(VERTICES)), (a, c, c + 1), (c, b, c + 2)))
        else:
            new = tuple(rng.randrange(VERTICES) for _ in range(3))
        found.append(tuple(k % VERTICES for k in new))
    return found[:count]


class Lists:
    """A frame whose tiles branch to one list, which is written again and again."""

    def __init__(self, rng: random.Random, memory: GuestMemory, **options: object) -> None:
        self.frame = Frame(64, 64, memory=memory, **options)
        vertices = b"".join(
            nv_vertex(
                rng.uniform(-20, 84), rng.uniform(-20, 84), 0.5, rng.uniform(0.3, 2),
                *(rng.random() for _ in range(3)),
            )
            for _ in range(VERTICES)
        )  # fmt: skip
        self.state = viewport(self.frame.job) + self.frame.nv_shader(PROGRAM, vertices, varyings=3)
        self.place = self.frame.job.room(0x1000)

    def draw(self, data: bytes, place: int | None = None) -> np.ndarray:
        """The picture of a compressed list; `data` goes on after its end."""
        place = self.place if place is None else place
        self.frame.job.memory.write(place, bytes([56, TRIANGLES]) + build(48) + data)
        return self.frame.render(self.state + build(17, address=place)).copy()


def written_out(primitives: list[tuple[int, ...]]) -> bytes:
    """Every triangle with its own three indices, and the way back."""
    codes = b"".join(b"\x81" + b"".join(k.to_bytes(2, "little") for k in p) for p in primitives)
    return codes + b"\x80\x12"


@pytest.mark.parametrize("seed", range(4))
def test_every_length(seed: int) -> None:
    rng = random.Random(seed)
    memory = GuestMemory(guard=True)
    lists = Lists(rng, memory, threads=1)
    whole = encode_compressed(triangles(rng, rng.choice((7, 9, 17, 26))), TRIANGLES)
    assert whole[-1] == 0x80
    shown = 0
    for length in range(len(whole)):
        data = whole[:length] + b"\x80" * 24
        memory.write(lists.place, data)
        decoded = decode_compressed(memory.read, lists.place, ListFormat(TRIANGLES))
        end = decoded.next - lists.place
        if decoded.problem is not None or any(k >= VERTICES for p in decoded.items for k in p):
            continue
        after = b"\x12" + rng.randbytes(24)
        picture = lists.draw(data[:end] + after)
        assert (picture == lists.draw(written_out(list(decoded.items)))).all(), (length, data.hex())
        shown += bool((picture != BACKGROUND).any())
    assert shown > 5
    assert not set(lists.frame.reporter.counts) - {"CLE-025"}, lists.frame.reporter.summary()


@pytest.mark.parametrize("options", [{"threads": 1}, {"engine": "interpreter"}])
def test_batches_of_every_size(options: dict[str, object]) -> None:
    """Also where the list's last byte is the last of memory."""
    rng = random.Random(5)
    memory = GuestMemory(guard=True)
    lists = Lists(rng, memory, **options)
    for count in range(1, 41 if "threads" in options else 12):
        data = encode_compressed(triangles(rng, count), TRIANGLES)
        picture = lists.draw(data + b"\x12")
        memory.write(lists.place, data)
        decoded = decode_compressed(memory.read, lists.place, ListFormat(TRIANGLES))
        assert (picture == lists.draw(written_out(list(decoded.items)))).all()
        assert (picture != BACKGROUND).any()
        last = MEMORY_SIZE - 3 - len(data) - 1
        assert (picture == lists.draw(data + b"\x12", last)).all()


@pytest.mark.parametrize("address", [None, 0x3FFFFFF8])
def test_clear_colours_that_are_not_whole(address: int | None) -> None:
    """A record 114 that the list ends in, or memory, which goes on at 0: all of it counts."""
    frame = Frame()
    record = build(114, colour=RED, colour_high=RED, z=0xFFFFFF)
    place = frame.job.room(64) if address is None else address
    frame.job.memory.write(place, record)
    frame.v3d.write(CT1CA, place)
    frame.v3d.write(CT1EA, place + (9 if address is None else len(record)))
    assert frame.reporter.counts["CLE-002"] == (address is None)
    data = build(113, address=frame.surface, width=128, height=128, format=1)
    data += build(115) + build(28)
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        data += build(115, column=column, row=row) + build(25 if row + column == 2 else 24)
    frame.run(data)
    assert (frame.pixels() == RED).all()


@pytest.mark.parametrize(
    ("record", "kept"),
    [
        (build(96), 2), (build(56, type=2, data=1), 1), (build(115, column=1), 2),
        (build(113, width=64, height=64), 5), (build(114), 3), (build(28), 6), (build(29), 1),
        (build(26), 4), (build(27), 3), (build(17), 4), (build(115) + build(17), 6),
    ],
)  # fmt: skip
def test_the_end_cuts_off_a_record_of_the_rendering_list(record: bytes, kept: int) -> None:
    """The missing bytes are read from what lies after the list; nothing after them is executed."""
    frame = Frame()
    place = frame.job.put(record + b"\x7f" * 8)
    frame.v3d.write(CT1CA, place)
    frame.v3d.write(CT1EA, place + kept)
    assert frame.reporter.counts["CLE-002"] == 1
    assert not frame.reporter.has("CLE-001"), frame.reporter.summary()


def test_more_loads_than_a_tile_can_wait_for() -> None:
    """A full load (27) is left out with a message as a load of one buffer (29) is."""
    frame = Frame()
    for load in (build(29, buffer=1, format=1, address=frame.surface), build(27)):
        frame.run(load * 9 + build(115) + build(28))
        assert not frame.v3d.threads[1].error
    assert frame.reporter.counts == {"CLE-004": 2}
