"""What native code is given of prepared draws (`Placed`) and of the frame at hand (`Sink`).

`frame_draws.py` makes both; `placing.py` puts the one into the other.
"""

from __future__ import annotations

from vc4lab.driver.draws.plans import HEAD
from vc4lab.simd import Array, Struct, i32, i64, ptr

KNOWN = 256
"""Records by their ids."""


class Piece(Struct):
    """A record of a draw: a state record with its id and the number of its value, or a primitive
    record, with the shader state before it (without an address) and its shader record's place."""

    first = i32
    second = i32
    data = ptr
    length = i32
    spare = i32


class Move(Struct):
    """An array of a draw whose vertices are others each time."""

    word = i32
    """Of the plan: the array's address."""
    buffer = i32
    """Its vertex buffer; -1: it has none, and is where it is."""
    relative = i32
    """Bytes from the buffer's offset to vertex 0; offsets wrap."""
    base = i32
    """The resource's address."""
    stride = i32
    vertex_bytes = i32
    """Of a vertex, that are read."""
    limit = i32
    """The resource's bytes."""
    spare = i32
    used = ptr
    """What waiting draws read of it; 0: it is never written."""


class Used(Struct):
    """The bytes of a buffer that waiting draws read: from the first to the last of all of them."""

    turn = i32
    """Of the frames in which they do."""
    low = i32
    high = i32


class LookUp(Struct):
    """A word of the plan for memory look-ups of constant buffer 0."""

    word = i32
    value = i32
    """Byte of the buffer."""
    is_limit = i32
    """Whether it is the largest offset from that byte that is inside; else its address."""
    is_fragment = i32


FIXED, ARRAYS, INDEXED = range(3)
"""What may change of a draw: nothing; where its vertices are, and how many; the same with indices.
"""


class Seen(Struct):
    """Where the changes of a resource are counted, and how many there were."""

    counter = ptr
    changes = i64


class Placed(Struct):
    """A prepared draw."""

    words = ptr
    relocations = ptr
    """Words that hold a byte of the plan, and become its address."""
    vertex_pairs = ptr
    fragment_pairs = ptr
    look_ups = ptr
    word_count = i32
    relocation_count = i32
    vertex_count = i32
    fragment_count = i32
    look_up_count = i32
    spare = i32
    records = ptr
    batches = ptr
    seen = ptr
    moves = ptr
    record_count = i32
    batch_count = i32
    seen_count = i32
    most_bytes = i32
    """Of its records."""
    number = i32
    """Among those that a queue's draws are looked up in."""
    framebuffer = i32
    """For which it was prepared."""
    job = i32
    """The last one that it was added to."""
    moving_seen_count = i32
    """Of what was looked at, what counts although the draw moves."""
    move_count = i32
    kind = i32
    """FIXED, ARRAYS or INDEXED: each primitive record is that of an instance then."""
    least = i32
    """Vertices without which nothing is drawn."""
    index_size = i32
    index_base = i32
    """Address and bytes of the indices' resource."""
    index_limit = i32
    buffer_count = i32
    """Vertex buffers: after their offsets a draw has that of its index buffer."""
    restarts = i32
    """Whether primitives end at indices that are `restart`."""
    restart = i32
    spare2 = i32
    serial = i32
    """Another one for each prepared draw, never 0."""
    index_used = ptr
    """As `Move.used`."""


assert [*Placed.fields][:11] == [
    "words", "relocations", "vertex_pairs", "fragment_pairs", "look_ups", "word_count",
    "relocation_count", "vertex_count", "fragment_count", "look_up_count", "spare",
]  # fmt: skip
assert HEAD.size == Placed.offset("records")


class Sink(Struct):
    """The frame that draws are added to."""

    memory = ptr
    body = ptr
    capacity = i32
    length = i32
    """Bytes of its records."""
    arena = i32
    arena_end = i32
    framebuffer = i32
    job = i32
    draws = i32
    changes = i32
    """Of state in its list, which the chip's binner counts."""
    batch = i32
    """Of the draw at hand, the first primitive record that no frame has yet; 0: all have one."""
    zeros = i32
    """The address of a word that is 0."""
    turn = i32
    """Of the frames that wait: another one when all are drawn."""
    last = i32
    """The serial number of the list's last draw, if that may come again with its plan; 0: none."""
    last_address = i32
    """Of its plan."""
    aside = i32
    """How many other frames wait: what is in their surfaces must not be looked at yet."""
    known = Array(i32, KNOWN)
    """The values of state records, by their ids; -1: not set."""
