"""Shader records, texture parameters and shaded vertices."""

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vc4lab.records import shader
from vc4lab.records.control import bytes_reader
from vc4lab.records.states import GlShaderState
from vc4lab.records.texture import MagFilter, MinFilter, TextureConfig, TextureType, Wrap


@given(st.integers(1, 8), st.booleans(), st.data())
def test_gl_record_round_trip(count: int, extended: bool, data: st.DataObject) -> None:
    size = shader.gl_record_size(count, extended)
    raw = bytearray(data.draw(st.binary(min_size=size, max_size=size)))
    raw[0], raw[1] = raw[0] & 7, 0
    if extended:
        raw[36 + 8 * count : 100] = bytes(64 - 8 * count)
        for n in range(count):
            raw[100 + 4 * n] = 0
    parsed = shader.parse_gl(bytes_reader(bytes(raw), 0x80), 0x80, count, extended)
    assert parsed.to_bytes() == raw
    assert parsed.text().count("attribute") == count + 2  # two fields are called so as well


def test_gl_record_fields() -> None:
    raw = bytearray(shader.gl_record_size(2, True))
    raw[0] = 5
    raw[3] = 4
    struct.pack_into("<II", raw, 4, 0x1000, 0x2000)
    raw[14], raw[15] = 3, 28
    struct.pack_into("<IBBBB", raw, 44, 0x5000, 11, 0x20, 16, 0xFF)
    struct.pack_into("<I", raw, 104, 0x1234)
    parsed = shader.parse_gl(bytes_reader(bytes(raw)), 0, 2, extended=True)
    assert parsed.record.fs_single_threaded
    assert parsed.record.clipping
    assert (parsed.record.fs_code, parsed.record.fs_uniforms) == (0x1000, 0x2000)
    assert (parsed.record.vs_attributes, parsed.record.vs_size) == (3, 28)
    assert parsed.attributes[1] == shader.Attribute(0x5000, 12, 0x1220, 16, 255)


def test_attribute_count() -> None:
    assert shader.attribute_count(GlShaderState.make(attributes=0)) == 8
    assert shader.attribute_count(GlShaderState.make(attributes=3)) == 3
    assert shader.attribute_count(GlShaderState.make(attributes=3, extended=1)) == 8
    state = GlShaderState.make(attributes=2, address=0x40)
    assert len(shader.parse_gl_state(bytes_reader(bytes(256)), state).attributes) == 2


def test_nv_and_vg_records() -> None:
    raw = bytes([0x0D, 24, 0, 3]) + struct.pack("<III", 0x100, 0x200, 0x300)
    record = shader.parse_nv(bytes_reader(raw), 0)
    assert (record.single_threaded, record.clipping, record.clip_header) == (1, 1, 1)
    assert (record.stride, record.varyings, record.vertices) == (24, 3, 0x300)
    assert shader.parse_nv(bytes_reader(raw[:6]), 0).vertices == 0
    assert shader.parse_vg(bytes_reader(raw), 0).uniforms == 0x200


def test_texture_of_a_recorded_demo() -> None:
    """32x32 raster texture as a bare-metal demo programs it."""
    config = TextureConfig.parse(0x00100000, 0x80000000 | 32 << 20 | 32 << 8)
    assert config.type is TextureType.RGBA32R
    assert (config.width, config.height, config.base) == (32, 32, 0x100000)
    assert (config.min_filter, config.mag_filter) == (MinFilter.LINEAR, MagFilter.LINEAR)
    assert "rgba32r 32x32" in config.text()


def test_texture_sizes_and_extras() -> None:
    config = TextureConfig.parse(0x3, 0, 0x40001001, 0)
    assert (config.width, config.height, config.levels) == (2048, 2048, 4)
    assert (config.cube_stride, config.explicit_lod) == (0x1000, True)
    child = TextureConfig.parse(0, 0, 3 << 30 | 5 << 12 | 6, 2 << 30 | 7 << 12 | 8)
    assert child.child == (6, 5, 8, 7)
    assert TextureConfig.parse(0x90, 0x80000000).type == 25, "a reserved type stays a number"
    with pytest.raises(ValueError, match="texture size 2049"):
        replace(config, width=2049).parameters()
    with pytest.raises(ValueError, match="cannot be a cube map"):
        replace(child, cube=True).parameters()


@given(
    st.builds(
        TextureConfig,
        base=st.integers(0, (1 << 20) - 1).map(lambda page: page << 12),
        type=st.sampled_from(TextureType),
        width=st.integers(1, 2048),
        height=st.integers(1, 2048),
        levels=st.integers(1, 16),
        mag_filter=st.sampled_from(MagFilter),
        min_filter=st.sampled_from(MinFilter),
        wrap_s=st.sampled_from(Wrap),
        wrap_t=st.sampled_from(Wrap),
        flip_y=st.booleans(),
        cube=st.booleans(),
        explicit_lod=st.booleans(),
        cube_stride=st.integers(0, (1 << 18) - 1).map(lambda page: page << 12),
    )
)
def test_texture_round_trip(config: TextureConfig) -> None:
    assert TextureConfig.parse(*config.parameters()) == config


@given(*[st.integers(0, 0xFFFFFFFF)] * 4)
def test_any_texture_words_parse(p0: int, p1: int, p2: int, p3: int) -> None:
    assert TextureConfig.parse(p0, p1, p2, p3).text()
