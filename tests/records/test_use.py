"""What the classes of records say, and the tables that follow from it."""

import pytest

from vc4lab.bits import Bits
from vc4lab.diagnostics import Reporter
from vc4lab.images import tiling
from vc4lab.memory import GuestMemory
from vc4lab.records import codes
from vc4lab.records.codes import IndexType, ListData, ListPrimitive, PrimitiveMode, VgPrimitive
from vc4lab.records.control import (
    DEFAULTS,
    RECORDS,
    STATE_FIELDS,
    STATE_RECORD_BYTES,
    STATE_SLOTS,
    foreign_to,
    ids_of,
    records_of,
)
from vc4lab.records.payload import (
    BINNING,
    RENDERING,
    BinnerState,
    Compressed,
    Flow,
    Frame,
    Ignored,
    Payload,
    Primitives,
    Semaphore,
    ShaderState,
    State,
    StateField,
)
from vc4lab.v3d.cle.executor import executes, handlers_of
from vc4lab.v3d.core import V3D
from vc4lab.v3d.state.render_state import RenderState
from vc4lab.v3d.tmu.texture_state import LevelLayout

KINDS = (Flow, Ignored, Semaphore, Frame, Primitives, Compressed, State, BinnerState)


def test_each_record_of_the_hardware_has_one_kind() -> None:
    without = {number for number, kind in RECORDS.items() if not issubclass(kind, KINDS)}
    assert without == {19, 20, 254}  # only named by drivers
    assert not any(RECORDS[number].legal for number in without)
    for kind in records_of(*KINDS):
        assert sum(issubclass(kind, one) for one in KINDS) == 1, kind
        assert kind.legal, kind


def test_kinds_of_record() -> None:
    assert ids_of(Flow) == (0, 16, 17, 18)
    assert ids_of(Ignored) == (1, 2, 3)
    assert ids_of(Semaphore) == (7, 8)
    assert ids_of(Frame) == (4, 5, 6, *range(24, 30), 112, 113, 114, 115)
    assert ids_of(Primitives, Compressed) == (32, 33, 41, 42, 48, 49)
    assert ids_of(State) == (56, *range(64, 68), *range(96, 105))
    assert ids_of(ShaderState) == (64, 65, 66, 67)
    assert ids_of(BinnerState) == (105, 106)


def test_records_of_native_readers() -> None:
    states = (56, *range(64, 68), *range(96, 105))
    assert set(ids_of(native=BINNING)) == {*range(1, 8), 32, 33, *states, 105, 106, 112}
    others = {1, 2, 3, 8, 17, *range(24, 30), 113, 114, 115}
    assert set(ids_of(native=RENDERING)) == {*others, *states}


def test_records_of_the_other_thread() -> None:
    assert [k.id for k in foreign_to(BINNING)] == [*range(24, 30), 113, 114, 115]
    assert [k.id for k in foreign_to(RENDERING)] == [4, 5, 6, 105, 106, 112]


def test_members_of_the_state_and_where_they_stand() -> None:
    assert STATE_FIELDS[67] == (StateField("shader_word", 0, 4), StateField("shader_uniforms", 4, 4))
    assert STATE_FIELDS[96] == (StateField("config", 0, 3),)
    assert STATE_FIELDS[98] == (StateField("point_size", 0, 4, real=True),)
    assert STATE_FIELDS[100] == (StateField("rht_boundary", 0, 2, signed=True),)
    names = ("clip_left", "clip_bottom", "clip_width", "clip_height")
    assert STATE_FIELDS[102] == tuple(StateField(n, 2 * k, 2) for k, n in enumerate(names))
    assert {k: size for k, size in STATE_RECORD_BYTES.items() if size != 5} == {
        56: 2, 67: 9, 96: 4, 100: 3, 102: 9, 104: 9
    }  # fmt: skip
    assert DEFAULTS == {"list_format": 0x12, "point_size": 1.0, "line_width": 1.0, "z_max": 1.0}
    assert (*((number,) for number in range(96, 105)), (56,), (64, 65, 66, 67)) == STATE_SLOTS
    set_by_records = {item.name for fields in STATE_FIELDS.values() for item in fields}
    assert set(RenderState.fields) == {*set_by_records, "shader_kind"}


def test_a_member_of_the_state_has_whole_bytes() -> None:
    with pytest.raises(TypeError, match="whole bytes"):

        class _Odd(State, id=250, size=2, title="Odd", sets={"half": RenderState.config}):
            half = Bits(3, 0)


def test_every_record_has_a_handler_in_the_lists_where_it_belongs() -> None:
    executor = V3D(GuestMemory(), Reporter()).executor
    for letter, table in zip((BINNING, RENDERING), executor._tables, strict=True):
        foreign = {kind.id for kind in foreign_to(letter)}
        belong = {kind.id for kind in records_of() if letter in kind.legal}
        assert set(table) == foreign | belong


def test_two_methods_for_a_record_are_a_mistake() -> None:
    class Stage:
        @executes(*records_of(Ignored))
        def one(self, _address: int) -> None: ...

        @executes(RECORDS[2])
        def other(self, _address: int) -> None: ...

    with pytest.raises(TypeError, match="Marker in two methods"):
        handlers_of(Stage())


def test_abstract_kinds_are_no_records() -> None:
    assert not {Payload, State, ShaderState, Frame} & set(RECORDS.values())


def test_what_draws_are_in_compressed_lists() -> None:
    assert [int(mode.list_primitive) for mode in PrimitiveMode] == [0, 1, 1, 1, 2, 2, 2]
    assert {int(kind): int(kind.list_primitive) for kind in VgPrimitive} == {
        1: 3, 3: 3, 4: 2, 5: 2, 6: 2
    }  # fmt: skip
    assert [data.bits for data in ListData] == [16, 24, 32]
    assert [width.bits for width in IndexType] == [8, 16]
    assert ListData.XY.of(ListPrimitive.RHT) == 0x33


def test_one_tiling_for_records_images_and_textures() -> None:
    assert codes.Tiling is tiling.Tiling
    assert {name: int(LevelLayout[name]) for name in ("RASTER", "T", "LT")} == {
        one.name: int(one) for one in codes.Tiling
    }
