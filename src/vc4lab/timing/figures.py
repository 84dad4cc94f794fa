"""The figures of a chip: which there are, what they mean, and what they may be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Spec:
    """A figure: what it says, its unit, the least and the most that makes sense.

    whole: it has no fraction. power: it is a power of two. flag: it is true or false.
    """

    text: str
    unit: str
    least: float
    most: float
    whole: bool = True
    power: bool = False
    flag: bool = False


def _count(text: str, most: int, least: int = 1) -> Spec:
    return Spec(text, "", least, most)


def _clocks(text: str, most: int = 10_000, least: float = 0) -> Spec:
    return Spec(text, "clocks", least, most)


def _memory_clocks(text: str) -> Spec:
    return Spec(text, "clocks of the memory", 0, 64)


def _parts(text: str, most: int = 1000) -> Spec:
    return Spec(text, "clocks", 0, most, whole=False)


def _nanoseconds(text: str, most: float = 10_000) -> Spec:
    return Spec(text, "ns", 0, most, whole=False)


def _bytes(text: str, most: int, least: int = 64) -> Spec:
    return Spec(text, "bytes", least, most, power=True)


def _pixels(text: str) -> Spec:
    return Spec(text, "pixels", 64, 128, power=True)


def _flag(text: str) -> Spec:
    return Spec(text, "", 0, 1, flag=True)


MODULES: dict[str, dict[str, Spec]] = {
    "clusters": {
        "count": _count(
            "clusters of engines that a global scheduler deals work out to; 0: one without it", 4, 0
        )
    },
    "global_scheduler": {
        "interval": _clocks("from one batch or tile, or piece of it, to the next", least=1),
        "latency": _clocks("from the command processor to the cluster", least=1),
    },
    "slices": {"count": _count("slices of QPUs", 4), "qpus": _count("QPUs of a slice", 4)},
    "qpu": {
        "slot": _clocks("an instruction; a QPU goes on at multiples of it", 64, 1),
        "request_words": _count("words of requests that may wait for a TMU", 64),
        "tile_load": _clocks("that a colour takes from the tile buffer to r4"),
    },
    "scheduler": {
        "launch": _clocks("from the register to the first fetch of the program"),
        "interval": _clocks("from one program to the next", least=1),
    },
    "instruction_cache": {
        "bytes": _bytes("of a slice", 1 << 20),
        "ways": _count("lines that share a place", 16),
    },
    "uniform_cache": {
        "bytes": _bytes("of a slice", 1 << 20),
        "ways": _count("lines that share a place", 16),
        "ahead": _count("words that are fetched ahead", 16),
        "line_clocks": _clocks("for a line to come from the cache to the QPU"),
    },
    "varyings": {
        "interval": _clocks("from one varying of 16 lanes to the next, of all QPUs of a slice"),
        "latency": _clocks("from its beginning to the QPU, besides"),
        "depth": _count("varyings that are made ahead for a thread", 8),
    },
    "tmu": {
        "per_slice": _count("TMUs of a slice", 4),
        "bytes": _bytes("of its cache", 1 << 20),
        "ways": _count("lines that share a place", 16),
        "latency": _clocks("from the request to the result, if the lines are there", least=1),
        "vector_clocks": _clocks("from one vector of 16 to the next", least=1),
        "line_clocks": _clocks("besides, each line of a quad's texels after its first one"),
        "vectors": _count("vectors that it works on at a time", 16),
    },
    "l2": {
        "bytes": _bytes("of the cache", 1 << 26),
        "ways": _count("lines that share a place", 16),
        "latency": _clocks("from the request to the line", least=1),
        "interval": _clocks("from one request to the next", least=1),
        "texel_interval": _clocks("from a request for texels to the next one", least=1),
        "misses": _count("lines that it waits for at a time", 16),
    },
    "sdram": {
        "latency": _clocks("from the memory's bus to the module that asked, both ways", least=1),
        "bytes_per_clock": Spec("of the V3D's port to it", "", 0.1, 1024, whole=False),
        "bus_bytes": Spec("width of its bus", "bytes", 1, 64, power=True),
        "burst": Spec("words of the bus that a column command moves", "", 1, 64, power=True),
        "banks": Spec("banks with an open row each", "", 1, 64, power=True),
        "row_bytes": _bytes("of a row of all chips", 1 << 20),
        "read_latency": _memory_clocks("RL: from a read command to its data"),
        "write_latency": _memory_clocks("WL: from a write command to its data"),
        "open": _nanoseconds("tRCD: from opening a row to a read or write command"),
        "active": _nanoseconds("tRAS: a row is open at least"),
        "precharge": _nanoseconds("tRPpb: closing the row of a bank"),
        "precharge_all": _nanoseconds("tRPab: closing the rows of all banks"),
        "read_to_precharge": _nanoseconds("tRTP"),
        "write_recovery": _nanoseconds("tWR: from written data to closing the row"),
        "write_to_read": _nanoseconds("tWTR: from written data to a read command"),
        "strobe": _nanoseconds("tDQSCK: data that are read come late by at most"),
        "refresh": _nanoseconds("tRFCab: a refresh of all banks"),
        "refresh_interval": _nanoseconds("tREFI: from one to the next; 0: none", 1e9),
        "reads": _count("reads that its controller chooses from", 32),
        "writes": _count("writes that its controller keeps", 32),
        "overlap": Spec("1: rows are opened while other data are moved; 0: they are not", "", 0, 1),
        "bunch": _count("writes that are done together while reads wait", 32),
        "others": Spec("that the ARM and the display take; 0: nothing", "bytes/s", 0, 1e12, whole=False),
        "others_bytes": _bytes("that they read at a time", 4096, 16),
    },
    "load": {
        "row_clocks": _parts("a row of a DMA load"),
        "word_clocks": _parts("a word of it"),
        "ahead": _count("rows that are asked for ahead", 64),
    },
    "store": {"row_clocks": _parts("a row (unit) of a DMA store"), "word_clocks": _parts("a word of it")},
    "vpm": {
        "read_latency": _clocks("from the read set-up to the first vector"),
        "interval": _clocks("a vector through its port"),
    },
    "sfu": {"interval": _clocks("from one vector to the next, of all QPUs of a slice")},
    "rendering_list": {
        "line": _bytes("that are read at a time", 4096, 16),
        "ahead": _count("reads that have not come", 64),
        "tiles": _count("tiles that it may be ahead of the tile buffer", 64),
        "byte_clocks": _parts("a byte of a list"),
        "record_clocks": _parts("a record"),
    },
    "binning_list": {
        "ahead": _count("reads that have not come or are not used up", 64),
        "record_clocks": _clocks("a record", least=1),
    },
    "vertex_cache": {
        "kept": _count("full batches that are looked at for a vertex", 64, 0),
        "index_clocks": _parts("a vertex that is named"),
        "arbitration": _count(
            "which thread's batch is collected: 0 in turn, 1 binning first, 2 rendering first", 2, 0
        ),
        "rows": _count("rows of the VPM for vertices", 65536, 16),
        "binning_rows": _count("of them for binning, at most", 65536, 1),
        "rendering_rows": _count("of them for rendering, at most", 65536, 1),
    },
    "attributes": {
        "vertex_clocks": _parts("a vertex"),
        "word_clocks": _parts("a word of its attributes"),
        "ahead": _count("reads that have not come", 64),
    },
    "binner": {
        "primitive_clocks": _parts("a primitive"),
        "entry_clocks": _parts("a tile that it is in"),
        "clip_clocks": _parts("a primitive that is cut, besides"),
        "tile_clocks": _parts("a tile whose list a flush ends"),
    },
    "setup": {
        "clocks": _clocks("a primitive", least=1),
        "varying_clocks": _parts("a varying of it"),
        "reversed_clocks": _clocks("a primitive that is faced away"),
        "latency": _clocks("from its end to the front end"),
    },
    "front_end": {
        "primitive_clocks": _clocks("a primitive"),
        "quad_clocks": _parts("a quad of it"),
        "latency": _clocks("from a quad to the shader scheduler"),
        "across": _flag("whether a vector may hold quads of several primitives"),
        "early_z": _flag("whether quads are rejected that fail the depth test"),
    },
    "shaders": {
        "launch": _clocks("from the scheduler to the first instruction"),
        "interval": _clocks("from one thread to the next", least=1),
        "uniforms": _clocks("from a thread's beginning to its first uniform, out of the cache"),
    },
    "tile_buffer": {
        "width": _pixels("of a tile, half with four samples"),
        "height": _pixels("of a tile, half with four samples"),
        "locks": _count("vectors of a slice that may hold a lock at a time", 64),
        "whole_quads": _flag("whether vectors that share a quad wait, not only a pixel"),
        "square": Spec(
            "across and down, of the squares in which vectors wait for each other",
            "pixels",
            2,
            64,
            power=True,
        ),
        "quad_clocks": _parts("a quad that is read or written"),
        "tile_clocks": _clocks("from the end of a tile to the next one"),
        "load_clocks": _parts("a byte that is loaded"),
        "store_clocks": _parts("a byte that is stored"),
        "burst": _bytes("that are moved at a time", 4096),
        "loads_ahead": _count("moves that have not come", 64),
    },
}
"""By section and key of a chip's file."""

QUEUES = (
    "programs",
    "launches",
    "l2_requests",
    "l2_answers",
    "tmu_requests",
    "tmu_results",
    "memory_requests",
    "memory_answers",
)
"""Queues of user programs."""

GRAPHICS_QUEUES = (
    "binning_groups",
    "rendering_groups",
    "fetches",
    "batches",
    "binned",
    "primitives",
    "set_up",
    "vectors",
    "shaders",
    "shaded",
    "pixels",
    "tile_work",
    "tile_done",
    "commands",
)
"""Queues of frames, besides those of user programs."""

ALL_QUEUES = QUEUES + GRAPHICS_QUEUES
QUEUE = {
    "depth": Spec("pieces that it holds", "", 1, 4096),
    "reserved": Spec("whether its room is reserved by the request it answers", "", 0, 1, flag=True),
}
"""Figures of each section `queues.NAME`."""

TMU_REQUESTS = {**QUEUE, "depth": Spec("requests that it holds", "", 1, 16)}
"""Figures of the section `queues.tmu_requests`: the QPU keeps the addresses of so many."""

BOARD = {
    "clock": Spec("of the V3D", "Hz", 1e6, 1e10, whole=False),
    "memory": Spec("that the memory moves at most", "bytes/s", 1e6, 1e12, whole=False),
}
"""Figures of each section `boards.NAME`."""
