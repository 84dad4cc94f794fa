"""C structures from text: layout as a compiler's, bytes and back."""

import ctypes

import pytest

from vc4lab.drm.device.device import DrmDevice
from vc4lab.drm.kms.modes import MODE
from vc4lab.drm.uapi.structures import Structure
from vc4lab.drm.uapi.submit import NO_BUFFER, SUBMIT_FIELDS, SURFACES, Surface, shape_of, submit_of

SIZES = {
    "VERSION": 64, "GET_UNIQUE": 16, "GET_CAP": 16, "GEM_CLOSE": 8, "VC4_SUBMIT_CL": 176,
    "VC4_WAIT_SEQNO": 16, "VC4_WAIT_BO": 16, "VC4_CREATE_BO": 16, "VC4_MMAP_BO": 16,
    "VC4_CREATE_SHADER_BO": 24, "VC4_GET_PARAM": 16, "VC4_SET_TILING": 16,
    "VC4_GET_HANG_STATE": 160, "VC4_PERFMON_CREATE": 24, "VC4_PERFMON_GET_VALUES": 16,
    "MODE_GETRESOURCES": 64, "MODE_GETCRTC": 104, "MODE_GETCONNECTOR": 80, "MODE_ADDFB2": 104,
    "MODE_PAGE_FLIP": 24, "MODE_CREATE_DUMB": 32, "MODE_ATOMIC": 56, "MODE_GETPROPERTY": 64,
    "MODE_CURSOR": 28, "MODE_CURSOR2": 36, "SYNCOBJ_WAIT": 32, "PRIME_HANDLE_TO_FD": 12,
    "WAIT_VBLANK": 24, "GET_CLIENT": 40, "MODE_GETPLANE": 32, "MODE_SETPLANE": 48,
}  # fmt: skip
"""sizeof in the kernel's headers, on 64-bit machines."""


def test_sizes_are_those_of_the_kernels_headers() -> None:
    with DrmDevice() as device:
        sizes = {ioctl.name: ioctl.structure.size for ioctl, _ in device.table.values()}
    for name, size in SIZES.items():
        assert sizes[name] == size, name
    assert MODE.size == 68


def test_shapes_of_jobs() -> None:
    structure = Structure("submit", SUBMIT_FIELDS)
    absent = {f"{name}_index": NO_BUFFER for name in SURFACES}
    fields = absent | {"min_x_tile": 1, "max_x_tile": 3, "min_y_tile": 2, "max_y_tile": 5}
    fields |= {"color_read_index": 7, "color_write_index": 3, "msaa_zs_write_index": 2}
    shape = shape_of(structure.pack(structure.make(**fields)))
    assert shape.tiles == 3 * 4
    assert sorted(shape.writes) == [2, 3]
    assert shape_of(structure.pack(structure.make(**fields))) is shape
    for changed in ({"flags": 1}, {"max_y_tile": 6}, {"zs_write_offset": 16}, {"width": 8}):
        assert shape_of(structure.pack(structure.make(**(fields | changed)))).key != shape.key
    for same in ({"clear_z": 5}, {"bin_cl": 9}, {"uniforms_size": 4}):
        assert shape_of(structure.pack(structure.make(**(fields | same)))) is shape
    assert shape_of(structure.pack(structure.make(**(fields | {"min_x_tile": 9})))).tiles == 0


def test_places_in_submit_cl() -> None:
    places = Structure("submit", SUBMIT_FIELDS).offsets
    known = {
        "bin_cl_size": 32, "bo_handle_count": 48, "width": 52, "min_x_tile": 56,
        "color_read_index": 60, "msaa_zs_write_index": 120, "clear_color": 132, "clear_z": 140,
        "clear_s": 144, "flags": 148, "seqno": 152, "perfmonid": 160, "pad2": 172,
    }  # fmt: skip
    for name, place in known.items():
        assert places[name] == place, name


def test_an_absent_surface_has_bits() -> None:
    """Those of color_write go into record 113: a frame with samples, but no resolved picture."""
    layout = Structure("submit", SUBMIT_FIELDS)
    absent = {f"{name}_index": NO_BUFFER for name in SURFACES}
    values = layout.make(**absent, color_write_bits=0x11, zs_write_flags=2)
    shape = shape_of(layout.pack(values))
    submit = submit_of(values, shape, (b"", b"", b""), ())
    assert not shape.writes
    assert submit.surfaces == {
        "color_write": Surface(NO_BUFFER, 0, 0x11, 0), "zs_write": Surface(NO_BUFFER, 0, 0, 2),
    }  # fmt: skip
    assert not any(surface.present for surface in submit.surfaces.values())


def test_layout_is_that_of_ctypes() -> None:
    class C(ctypes.Structure):
        _fields_ = (
            ("a", ctypes.c_uint8), ("b", ctypes.c_uint64), ("c", ctypes.c_uint16 * 3),
            ("d", ctypes.c_int32), ("e", ctypes.c_char * 5),
        )  # fmt: skip

    ours = Structure("C", "u8 a, u64 b, u16[3] c, i32 d, char[5] e")
    assert ours.size == ctypes.sizeof(C)
    for name in "abcde":
        assert ours.offsets[name] == getattr(C, name).offset
    values = ours.make(a=1, b=2**63, c=[1, 2, 3], d=-5, e=b"hello")
    theirs = C.from_buffer_copy(ours.pack(values))
    assert (theirs.a, theirs.b, list(theirs.c), theirs.d, theirs.e) == (
        1, 2**63, [1, 2, 3], -5, b"hello",
    )  # fmt: skip
    assert "e=b'hello'" in repr(ours.parse(ours.pack(values)))


def test_declarations_are_looked_at() -> None:
    for text in ("u33 a", "u32", "u32 a b"):
        with pytest.raises((ValueError, KeyError)):
            Structure("wrong", text)
    assert Structure("nothing", "").size == 0
