"""Mailbox messages, good and hostile."""

import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vc4lab.soc.inspect.watchdog import LINE_NAMES
from vc4lab.soc.videocore.properties import tag_table

AT = 0x100000
P = 0x3F000000
MAILBOX = 0xB880
HALT = bytes.fromhex("feffffea")


@pytest.fixture
def machine(boot):
    machine = boot(HALT)
    machine.mailbox.at_once = True
    return machine


def call(machine, *tags: tuple[int, list[int]], size: int = 8, end: bool = True) -> list[list[int]]:
    """Send tags with `size`-byte value buffers; the values that come back."""
    machine.mailbox.at_once = True
    words: list[int] = []
    places = []
    for number, values in tags:
        room = max(size, 4 * len(values))
        places.append((8 + 4 * len(words) + 12, room))
        words += [number, room, 0, *values, *[0] * (room // 4 - len(values))]
    words += [0] if end else []
    data = struct.pack(f"<{2 + len(words)}I", 8 + 4 * len(words), 0, *words)
    machine.memory.write(AT, data)
    machine.bus.write(MAILBOX + 0x20, 4, AT | 0xC0000000 | 8)
    assert machine.bus.read(MAILBOX + 0x18, 4) & 1 << 30 == 0
    assert machine.bus.read(MAILBOX, 4) == AT | 0xC0000000 | 8
    return [list(struct.unpack(f"<{room // 4}I", machine.memory.read(AT + at, room))) for at, room in places]


def response(machine, index_at: int = 16) -> int:
    return machine.memory.u32(AT + index_at)


def test_identity_tags(machine):
    revision, memory, videocore, serial = call(
        machine, (0x10002, []), (0x10005, []), (0x10006, []), (0x10004, [])
    )
    assert revision[0] == 0xA01041
    assert memory == [0, 0x3C000000]
    assert videocore == [0x3C000000, 0x4000000]
    assert serial[0] != 0
    assert machine.memory.u32(AT + 4) == 0x80000000
    assert response(machine) == 0x80000004


def test_clocks(machine):
    assert call(machine, (0x30002, [4]))[0] == [4, 250_000_000]
    assert call(machine, (0x38002, [5, 300_000_000, 0]))[0][:2] == [5, 300_000_000]
    assert call(machine, (0x30001, [99]))[0] == [99, 2]


V3D_CLOCK, CORE_CLOCK = 5, 4
MHZ = 1_000_000


@pytest.mark.parametrize(
    ("config", "v3d", "core"),
    [
        ("v3d_freq=300\n", 300, 250),
        ("gpu_freq=400\n", 400, 400),
        ("gpu_freq=400\nv3d_freq=125\n", 125, 400),
        ("v3d_freq=0\n", None, 250),
        ("v3d_freq=-1\ngpu_freq=99999999999\n", None, None),
        ("v3d_freq=fast\n", None, 250),
        ("v3d_freq=1500\n", 1500, 250),
        ("v3d_freq=1501\n", None, 250),
    ],
)
def test_clocks_of_config_txt(boot, config, v3d, core):
    """In MHz; None: the board's, and a message that the line is invalid."""
    machine = boot(HALT, config)
    for number, rate in ((V3D_CLOCK, v3d), (CORE_CLOCK, core)):
        assert call(machine, (0x30002, [number]))[0] == [number, (rate or 250) * MHZ]
    refused = [item for item in machine.reporter.items if item.code == "BOOT-010"]
    assert len(refused) == (v3d is None) + (core is None)


def test_display_tags_take_effect_together(machine):
    base, pitch, size, _order = call(
        machine,
        (0x40001, [4096]),
        (0x40008, []),
        (0x48003, [100, 50]),
        (0x48006, [1]),
        (0x48004, [100, 100]),
        (0x48005, [32]),
    )[:4]
    assert base[0] >> 30 == 3
    assert base[1] == 416 * 100
    assert pitch[0] == 416
    assert size == [100, 50]
    framebuffer = machine.videocore.framebuffer
    assert framebuffer.address == base[0] & 0x3FFFFFFF
    machine.memory.set_u32(framebuffer.address + 50 * 416 + 4, 0x00332211)
    assert call(machine, (0x48009, [0, 50]))[0] == [0, 50]
    assert framebuffer.flips == 1
    assert machine.screen.image.getpixel((1, 0)) == (0x11, 0x22, 0x33)


def test_test_tags_change_nothing(machine):
    assert call(machine, (0x44005, [32]))[0][0] == 32
    assert call(machine, (0x40005, []))[0][0] == 16
    assert call(machine, (0x44003, [9000, 5]))[0] == [4096, 5]


@pytest.mark.parametrize("depth", [8, 16, 24, 32])
@pytest.mark.parametrize("order", [0, 1])
def test_depths_and_orders(machine, depth, order):
    call(machine, (0x48003, [8, 8]), (0x48005, [depth]), (0x48006, [order]), (0x40001, [0]))
    framebuffer = machine.videocore.framebuffer
    if depth == 8:
        call(machine, (0x4800B, [7, 1, 0x00030201]))
        machine.memory.fill(framebuffer.address, framebuffer.allocated_size, 7)
        expected = (1, 2, 3)
    elif depth == 16:
        machine.memory.write(framebuffer.address, struct.pack("<H", 0xF81F) * 128)
        expected = (255, 0, 255)
    else:
        line = bytes((1, 2, 3, 4)[: depth // 8]) * 8
        line += bytes(framebuffer.geometry.pitch - len(line))
        machine.memory.write(framebuffer.address, line * 8)
        expected = (1, 2, 3)
    if order == 0 and depth != 16:
        expected = expected[::-1]
    assert machine.screen.image.getpixel((7, 7)) == expected


def test_absurd_framebuffers(machine):
    call(machine, (0x48003, [0xFFFFFFFF, 0xFFFFFFFF]), (0x48005, [77]), (0x40001, [16]))
    assert machine.reporter.has("SOC-020")
    call(machine, (0x48004, [16384, 16384]), (0x40001, [16]))
    assert machine.reporter.has("SOC-021")
    assert machine.screen.image is None


def test_memory_handles(machine):
    handle = call(machine, (0x3000C, [10000, 4096, 4]))[0][0]
    address = call(machine, (0x3000D, [handle]))[0][0]
    assert address >> 30 == 3
    assert address % 4096 == 0
    assert call(machine, (0x3000E, [handle]))[0][0] == 0
    assert call(machine, (0x3000F, [handle]))[0][0] == 0
    assert call(machine, (0x3000F, [handle]))[0][0] == 1
    assert call(machine, (0x3000C, [1 << 31, 1, 4]))[0][0] == 0
    assert machine.reporter.has("SOC-023")
    again = call(machine, (0x3000C, [16, 16, 0xC]))[0][0]
    assert call(machine, (0x3000D, [again]))[0][0] >> 30 == 1


@pytest.mark.parametrize(
    "switch", [(0x30012, [1]), (0x38030, [11, 1]), (0x38001, [5, 1])], ids=["qpu", "domain", "clock"]
)
def test_ways_to_power_the_v3d(machine, switch):
    assert machine.bus.read(0xC00000, 4) == 0xDEADBEEF
    call(machine, switch)
    assert machine.bus.read(0xC00000, 4) == 0x02443356
    number, values = switch
    call(machine, (number, [*values[:-1], 0]))
    assert machine.bus.read(0xC00000, 4) == 0xDEADBEEF


def test_execute_qpu_without_power(machine):
    assert call(machine, (0x30011, [1, AT + 0x1000, 0, 0]))[0][0] == 0x80000000
    assert call(machine, (0x30011, [99, AT, 0, 0]))[0][0] == 0x80000000


def test_execute_qpu_fails_as_one_likes(boot):
    from vc4lab.v3d.unknowns import Unknowns

    machine = boot(HALT, unknowns=Unknowns({"execute_qpu_failure": "one"}))
    assert call(machine, (0x30011, [1, AT + 0x1000, 0, 0]))[0][0] == 1
    assert call(machine, (0x30011, [99, AT, 0, 0]))[0][0] == 1


def test_unknown_tag_and_missing_end(machine):
    call(machine, (0x12345678, [1]), end=False)
    assert response(machine) == 0
    assert machine.memory.u32(AT + 4) == 0x80000000
    assert {"SOC-012", "SOC-013"} <= set(machine.reporter.counts)


def test_long_response_is_cut_and_tells_its_length(machine):
    call(machine, (0x4000B, []))
    assert response(machine) == 0x80000000 | 1024
    assert machine.memory.u32(AT + 8 + 12 + 8) == 0


def test_damaged_messages(machine):
    machine.memory.write(AT, struct.pack("<6I", 1 << 30, 0, 1, 4, 0, 0))
    machine.bus.write(MAILBOX + 0x20, 4, AT | 8)
    assert machine.memory.u32(AT + 4) == 0x80000001
    machine.memory.write(AT, struct.pack("<6I", 24, 0, 0x10002, 0xFFFFFFFC, 0, 0))
    machine.bus.write(MAILBOX + 0x20, 4, AT | 8)
    assert machine.memory.u32(AT + 4) == 0x80000001
    machine.bus.write(MAILBOX + 0x20, 4, 0xFFFFFFF8)
    machine.bus.write(MAILBOX + 0x20, 4, AT | 5)
    assert {"SOC-010", "SOC-011"} <= set(machine.reporter.counts)


def test_replies_overflow_but_requests_work(machine):
    for _ in range(20):
        machine.memory.write(AT, struct.pack("<7I", 28, 0, 0x30012, 4, 0, 1, 0))
        machine.bus.write(MAILBOX + 0x28, 4, AT | 8)
    assert machine.bus.read(MAILBOX + 0x18, 4) == 1 << 31 | 8
    assert machine.v3d_bridge.powered
    for _ in range(8):
        machine.bus.read(MAILBOX + 0xC, 4)
    assert machine.bus.read(MAILBOX + 0x18, 4) == 1 << 30


def test_the_table_is_sound():
    for number, tag in tag_table().items():
        assert tag.id == number
        assert tag.name
        for kind in (tag.request + "," + tag.response).split(","):
            assert not kind.strip() or kind.split()[0] in ("u32", "u64", "bytes")
    assert LINE_NAMES[48].startswith("vsync")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    number=st.sampled_from(sorted(tag_table())) | st.integers(0, 0xFFFFFFFF),
    values=st.lists(st.integers(0, 0xFFFFFFFF) | st.integers(0, 4096), max_size=10),
    address=st.integers(0, 0xFFFFFFFF),
)
def test_any_message_is_survived(machine, number, values, address):
    data = struct.pack(f"<5I{len(values)}I", 24 + 4 * len(values), 0, number, 4 * len(values), 0,
                       *values)  # fmt: skip
    for place in (AT, address & ~15):
        machine.memory.write(place, data + bytes(4))
        machine.bus.write(MAILBOX + 0x20, 4, place & ~15 | 8)
        machine.bus.write(MAILBOX + 0x20, 4, place & ~15 | 1)
        machine.bus.read(MAILBOX, 4)
    machine.screen.image  # noqa: B018 - must not raise


def test_the_monitor_tells_its_mode(boot):
    machine = boot(HALT, "hdmi_group=2\nhdmi_mode=35\n")
    places = (0x30020, [0]), (0x30020, [1]), (0x30020, [2])
    block, second, other = call(machine, *places, size=136)
    assert (block[:2], second[:2], other[:2]) == ([0, 0], [1, 0], [2, 1])
    assert struct.pack("<I", second[2])[:2] == b"\x02\x03"
    edid = struct.pack("<32I", *block[2:])
    assert edid[:8] == b"\0\xff\xff\xff\xff\xff\xff\0"
    assert sum(edid) & 0xFF == 0
    assert edid[56] | edid[58] >> 4 << 8 == 1280
    assert edid[59] | edid[61] >> 4 << 8 == 1024


@pytest.mark.parametrize(("asked", "size"), [("4095 4095 240", (4095, 4095)), ("4096 9", (1920, 1080))])
def test_a_mode_of_one_s_own(boot, asked, size):
    """hdmi_cvt; an EDID has 12 bits for a side."""
    machine = boot(HALT, f"hdmi_group=2\nhdmi_mode=87\nhdmi_cvt={asked}\n")
    (block,) = call(machine, (0x30020, [0]), size=136)
    edid = struct.pack("<32I", *block[2:])
    assert (edid[56] | edid[58] >> 4 << 8, edid[59] | edid[61] >> 4 << 8) == size


def test_overscan(boot):
    config = "hdmi_group=2\nhdmi_mode=4\noverscan_left=16\noverscan_top=8\n"
    machine = boot(HALT, config)
    size, overscan = call(machine, (0x40003, []), (0x4000A, []), size=16)
    assert (size[:2], overscan) == ([624, 472], [8, 0, 16, 0])
    tested, kept = call(machine, (0x4400A, [1, 2, 3, 4]), (0x4000A, []), size=16)
    assert (tested, kept) == ([1, 2, 3, 4], [8, 0, 16, 0])
    changed, kept = call(machine, (0x4800A, [1, 2, 9999, 4]), (0x4000A, []), size=16)
    assert changed == kept == [1, 2, 160, 4]
    machine = boot(HALT, config + "disable_overscan=1\n")
    assert call(machine, (0x40003, []))[0] == [640, 480]


def test_fuses_stay_blown(machine):
    call(machine, (0x38021, [6, 2, 0x5, 0x100]), (0x38021, [6, 1, 0x2]), size=16)
    assert call(machine, (0x30021, [5, 3]), size=20)[0] == [5, 3, 0, 7, 0x100]
    call(machine, (0x38021, [7, 0xFFFFFFFF, 1]), (0x38021, [0xFFFFFFFF, 1, 1]), size=16)
    assert call(machine, (0x30021, [7, 9]), size=20)[0][:3] == [7, 1, 0x101]
    assert call(machine, (0x30021, [99, 9]), size=20)[0][:2] == [99, 0]


def test_expander_setup(machine):
    assert call(machine, (0x30043, [130]), size=24)[0][:5] == [0, 1, 0, 0, 0]
    assert call(machine, (0x38043, [130, 0, 1, 1, 1, 1]), size=24)[0][0] == 0
    assert call(machine, (0x30043, [130]), size=24)[0][:5] == [0, 0, 1, 1, 1]
    assert call(machine, (0x30041, [130]))[0] == [0, 1]
    assert call(machine, (0x30043, [7]), size=24)[0][0] == 1


def test_buffers_are_told_as_they_were_given(machine):
    call(machine, (0x48020, [0xC0100000]), (0x4801F, [0xC0200000]))
    assert [values[0] for values in call(machine, (0x40010, []), (0x4000F, []))] == [0xC0100000, 0xC0200000]


def test_services_that_are_not_there(machine):
    call(machine, (0x30010, [0xC0008000, 1, 2, 3, 4, 5, 6]), size=28)
    assert response(machine) == 0, "no answer: ARM code is nothing for the VPU"
    assert call(machine, (0x48010, [0xC0100000]))[0][0] != 0
    assert call(machine, (0x30049, [1, 0, 0]), size=12)[0] == [1, 0, 1]
    assert {item.code for item in machine.reporter.items} == {"SOC-088", "SOC-090"}


def test_misaligned_buffers_are_named(machine):
    message = struct.pack("<8I", 32, 0, 0x10005, 8, 0, 0, 0, 0)
    machine.memory.write(AT + 8, message)
    machine.bus.write(MAILBOX + 0x20, 4, AT + 8 | 8)
    machine.memory.write(AT + 4, message)
    machine.bus.write(MAILBOX + 0x20, 4, AT + 4 | 8)
    texts = [item.message for item in machine.reporter.items if "multiple of 16" in item.message]
    assert [item.code for item in machine.reporter.items] == ["SOC-011", "SOC-010"]
    assert len(texts) == 2


@pytest.mark.parametrize(("width", "invalid"), [(16, 0), (15, 1)])
def test_a_cursor_that_is_too_small_is_answered_and_reported(machine, width, invalid):
    ((answer, *_),) = call(machine, (0x8010, [width, 16, 0, 0xC0008000, 0, 0]))
    assert answer == invalid
    assert machine.reporter.has("SOC-022") == bool(invalid)


def test_displays(machine):
    """How many there are, and what each shows, as Linux's bcm2708_fb.c asks."""
    call(machine, (0x48003, [64, 32]), (0x48004, [64, 64]), (0x48005, [32]), (0x40001, [16]))
    call(machine, (0x48009, [0, 32]))
    count, settings, number = call(machine, (0x40013, []), (0x40014, [0]), (0x40016, [0]), size=40)
    assert count[0] == 1
    assert settings == [0, 64, 32, 32, 256, 64, 64, 0, 32, machine.videocore.framebuffer.bus_address]
    assert number[0] == 2, "HDMI"
    assert not machine.reporter.items


def small(machine, number: int, size: int) -> list:
    """One tag with a value buffer of `size` bytes; what is reported."""
    words = [0, 0, number, size, 0, *[0] * (size // 4), 0]
    words[0] = 4 * len(words)
    machine.memory.write(AT, struct.pack(f"<{len(words)}I", *words))
    machine.bus.write(MAILBOX + 0x20, 4, AT | 0xC0000000 | 8)
    return machine.reporter.items


@pytest.mark.parametrize(
    ("number", "size", "needed"),
    [(0x10002, 0, 4), (0x10004, 4, 8), (0x40001, 4, 8), (0x48003, 4, 8), (0x30012, 0, 4)],
)
def test_a_value_buffer_that_is_too_small(machine, number, size, needed):
    (item,) = small(machine, number, size)
    assert item.code == "SOC-014"
    assert f"tag 0x{number:08x}" in item.message
    assert f"a value buffer of {size} bytes, but needs {needed} " in item.message
    assert item.address == AT | 0xC0000000 | 8


@pytest.mark.parametrize(
    ("number", "size"), [(0x10002, 4), (0x50001, 0), (0x4000B, 8), (0x48001, 0), (0x38002, 8), (0x48003, 8)]
)
def test_buffers_that_are_large_enough(machine, number, size):
    """Texts and palettes are cut off on purpose; words at the end of a request may be left out."""
    assert "SOC-014" not in {item.code for item in small(machine, number, size)}
