"""Structs, staged functions and kernels as a type checker sees them; mypy checks this file.

An `ignore` that is not needed is an error (`warn_unused_ignores` in pyproject.toml): mypy has to
find each mistake.
"""

from typing import assert_type

import pytest

from vc4lab.records.states import RenderState
from vc4lab.simd import (
    Array,
    Function,
    Struct,
    Value,
    build,
    call,
    call_pointer,
    f32,
    i32,
    kernel,
    load,
    nested,
    ptr,
    staged,
    store,
)
from vc4lab.simd.members import Field


class Weight(Struct):
    grams = f32


class Parcel(Struct):
    width = i32
    place = ptr
    weight = nested(Weight)
    words = Array(i32, 4)
    weights = Array(Weight, 2)


def test_members_of_a_declaration() -> None:
    assert_type(Parcel.width, Field)
    assert (Parcel.width.offset, Parcel.words.offset) == (0, 20)
    with pytest.raises(AttributeError):
        _ = Parcel.wdth  # type: ignore[attr-defined]


def test_members_in_python() -> None:
    parcel = Parcel(width=3)
    assert_type(parcel, Parcel)
    assert_type(parcel.weight, Weight)
    assert_type(parcel.weights[1], Weight)
    numbers: list[int] = [parcel.width, parcel.place, parcel.words[2], *parcel.words]
    assert numbers == [3, 0, 0, 0, 0, 0, 0]
    parcel.words = [1, 2, 3, 4]
    parcel.weight.grams = 1.5
    grams: float = parcel.weight.grams
    assert (grams, parcel.weights[1].grams) == (1.5, 0.0)
    with pytest.raises(AttributeError):
        _ = parcel.wdth  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        parcel.weight.gram = 1.0  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        parcel.width = 1.5  # type: ignore[assignment]


def test_members_in_kernels() -> None:
    def body(place: Value) -> None:
        parcel = Parcel.at(place)
        assert_type(parcel, Parcel)
        value: Value = parcel.width + 1
        numbers: Value = parcel.words
        store(numbers + 4, value)
        parcel.width = value
        second = Weight.at(parcel.weights + Weight.size)
        second.grams = parcel.weight.grams * 2.0
        with pytest.raises(AttributeError, match="no member 'wdth'"):
            _ = parcel.wdth  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match="no member 'gram'"):
            parcel.weight.gram = value  # type: ignore[attr-defined]
        with pytest.raises(AttributeError):
            _ = parcel.width.zxt(i32)  # type: ignore[attr-defined]

    parcel = Parcel(width=41)
    parcel.weight.grams = 1.25
    build("parcel", {"f": Function((ptr,), None, body)})["f"](parcel.address)
    assert (parcel.width, parcel.words[1], parcel.weights[1].grams) == (42, 42, 2.5)


def test_members_of_the_render_state() -> None:
    """They are declared beside the records that set them, and nowhere else."""
    state = RenderState(line_width=2.0)
    width: float = state.line_width
    assert width == 2.0
    assert_type(RenderState.line_width, Field)
    with pytest.raises(AttributeError):
        _ = state.line_widht  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        state.line_widht = 1.0  # type: ignore[attr-defined]


@staged
def widened(parcel: Parcel, by: Value, *, twice: bool = False) -> Value:
    return parcel.width + (by << 1 if twice else by)


@kernel(args=(ptr, i32), returns=i32)
def enlarged(place: Value, by: Value) -> Value:
    return widened(Parcel.at(place), by, twice=True)


@kernel(args=(ptr,))
def emptied(place: Value) -> None:
    Parcel.at(place).width = 0


def test_calls_of_staged_functions_and_kernels() -> None:
    def body(place: Value, by: Value) -> Value:
        parcel = Parcel.at(place)
        assert_type(widened(parcel, by), Value)
        with pytest.raises(TypeError):
            widened(parcel, by, thrice=True)  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            widened(parcel)  # type: ignore[call-arg]
        with pytest.raises(AttributeError):
            widened(place, by)  # type: ignore[arg-type]
        found = call(enlarged, place, by)
        assert_type(found, Value)
        with pytest.raises(AttributeError):
            _ = found.widht  # type: ignore[attr-defined]
        with pytest.raises(TypeError):
            call(enlarged, place, "by")  # type: ignore[arg-type]
        call(emptied, place)
        with pytest.raises(TypeError):
            load(i32, "place")  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            _ = found + None  # type: ignore[operator]
        return found

    parcel = Parcel(width=4)
    run = build("parcels", {"f": Function((ptr, i32), i32, body)})["f"]
    assert (run(parcel.address, 3), parcel.width) == (10, 0)


def test_what_a_function_at_an_address_returns_is_declared() -> None:
    def body(place: Value, function: Value) -> Value:
        assert_type(call_pointer(function, None, (ptr,), place, float_mode="keep"), None)
        return call_pointer(function, i32, (ptr,), place, float_mode="keep") + 1

    def give(place: Value) -> Value:
        return load(i32, place)

    parcel = Parcel(width=6)
    inner = build("inner", {"f": Function((ptr,), i32, give)})["f"]
    outer = build("outer", {"f": Function((ptr, ptr), i32, body)})["f"]
    assert outer(parcel.address, inner.address) == 7
