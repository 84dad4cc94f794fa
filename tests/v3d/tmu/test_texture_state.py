"""Texture parameter words: kinds, descriptors and what is reported about them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from vc4lab.records.texture import TextureConfig
from vc4lab.v3d.tmu.texture_state import MipMode, describe_texture

BASE = 0x400000


def test_recorded_mip_offsets_reach_the_descriptor() -> None:
    config = TextureConfig(base=0x1000000, width=512, height=512, levels=10)
    _, descriptor = describe_texture(*config.parameters())
    assert [0x1000000 - base for base in descriptor.base[:10]] == [
        0, 0x40000, 0x50000, 0x54000, 0x55000, 0x55400, 0x55500, 0x55540, 0x55580, 0x555C0,
    ]  # fmt: skip


def test_kinds_stay_few() -> None:
    """Place and size do not make a new kind; without a use for it, neither does the LOD."""
    one = describe_texture(*TextureConfig(base=BASE, width=256, height=256).parameters())
    two = describe_texture(*TextureConfig(base=0x10000, width=800, height=600).parameters())
    assert one[0] == two[0]
    explicit = TextureConfig(base=BASE, width=256, height=256, explicit_lod=True)
    assert describe_texture(*explicit.parameters(), 4)[0] == one[0]
    assert one[0].mip is MipMode.BASE


random_word = st.integers(0, 0xFFFFFFFF)


@settings(max_examples=200, deadline=None)
@given(random_word, random_word, random_word, random_word, st.integers(0, 4))
def test_every_parameter_word_is_described(p0: int, p1: int, p2: int, p3: int, used: int) -> None:
    kind, descriptor = describe_texture(p0, p1, p2, p3, used)
    assert 1 <= descriptor.width[0] <= 2048
    assert 0 <= descriptor.last_level < 16
    assert hash(kind) == hash(describe_texture(p0, p1, p2, p3, used)[0])


def test_findings_name_the_field() -> None:
    seen: list[tuple[str, str]] = []

    class Listener:
        def report(self, code: str, message: str, address: int | None = None) -> None:
            assert address == 0x1234
            seen.append((code, message))

    def codes(p0: int, p1: int, p2: int = 0, p3: int = 0) -> list[str]:
        seen.clear()
        describe_texture(p0, p1, p2, p3, 4, reporter=Listener(), address=0x1234)  # type: ignore[arg-type]
        return [code for code, _ in seen]

    square = 64 << 20 | 64 << 8
    clamp = 0b0101
    assert codes(0, square) == []
    assert codes(0xF0, 1 << 31 | square) == ["TMU-001"]
    assert codes(0xB0, square) == ["TMU-002"]
    assert codes(0, square | 6 << 4) == ["TMU-003"]
    assert codes(0, 1 << 31 | 64 << 20 | 60 << 8 | clamp) == ["TMU-004"]
    assert codes(0, square, 2 << 30) == ["TMU-005"]
    assert codes(0, 64 << 20 | 60 << 8) == ["TMU-006"]
    assert codes(0, 64 << 20 | 60 << 8 | clamp) == []
    assert codes(3, square, 2 << 30 | 5 << 12 | 5) == ["TMU-007"]
    assert codes(1 << 9, square, 1 << 30 | 1 << 12, 2 << 30 | 5 << 12 | 5) == ["TMU-008"]
    assert codes(1, 1 << 31 | square) == ["TMU-009"]
    assert codes(15, square) == ["TMU-010"]
    assert codes(1 << 9, square) == ["TMU-011"]
    assert "cube map stride" in seen[0][1]
