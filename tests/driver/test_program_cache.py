"""Compiled programs on disk."""

import json
from pathlib import Path
from typing import NoReturn

import pytest

from vc4lab.driver import program_cache
from vc4lab.driver.compiler.interface import FragmentKey, TextureKey, VertexKey
from vc4lab.driver.draws.programs import CompileError
from vc4lab.driver.program_cache import mesa_compiler
from vc4lab.mesa.protocol.codes import Compare
from vc4lab.mesa.protocol.formats import Format
from vc4lab.simd import cache

TGSI = Path(__file__).parents[1] / "data" / "tgsi"
FRAGMENT = (TGSI / "ints.effect2d-edge.1.frag.tgsi").read_text()
VERTEX = (TGSI / "ints.texture-texgen.0.vert.tgsi").read_text()
KEY = FragmentKey(alpha_test=Compare.LESS, textures=(TextureKey(),))
VERTEX_KEY = VertexKey(formats=(int(Format.R32G32B32_FLOAT),) * 2)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VC4LAB_CACHE", str(tmp_path))
    return tmp_path


def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise AssertionError("it is compiled again")

    monkeypatch.setattr(program_cache, "compile_fragment", refuse)
    monkeypatch.setattr(program_cache, "compile_vertex", refuse)


def objects(folder: Path) -> list[Path]:
    """Entries of compiled programs: threads of earlier tests may still write native code there."""
    return [
        one for one in sorted(folder.glob("??/*.o"))
        if (cache.read(one.stem) or b"").startswith(b"{")
    ]  # fmt: skip


def test_programs_are_found_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = mesa_compiler()
    made = compiler.fragment(FRAGMENT, KEY), compiler.vertex(VERTEX, VERTEX_KEY)
    assert len(objects(folder)) == 2
    no_compiler(monkeypatch)
    again = compiler.fragment(FRAGMENT, KEY), compiler.vertex(VERTEX, VERTEX_KEY)
    assert again == made
    assert again[0].lines == made[0].lines


def test_state_text_and_sources_make_other_programs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = mesa_compiler()
    first = compiler.fragment(FRAGMENT, KEY)
    assert compiler.fragment(FRAGMENT, FragmentKey(textures=(TextureKey(),))) != first
    compiler.fragment(FRAGMENT + "\n", KEY)
    monkeypatch.setattr(cache, "source_digest", lambda: "others")
    compiler.fragment(FRAGMENT, KEY)
    assert len(objects(folder)) == 4


def damage_cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def damage_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def damage_empty(path: Path) -> None:
    path.write_bytes(b"")


def damage_no_json(path: Path) -> None:
    cache.write(path.stem, b"\xff{")


def damage_deep(path: Path) -> None:
    cache.write(path.stem, b"[" * 100000)


def damage_no_table(path: Path) -> None:
    cache.write(path.stem, json.dumps([1, 2]).encode())


def damage_other_stage(path: Path) -> None:
    other = json.loads(cache.read(path.stem) or b"")
    other["programs"][0]["stage"] = "vertex"
    cache.write(path.stem, json.dumps(other).encode())


@pytest.mark.parametrize(
    "damage",
    [
        damage_cut, damage_bit, damage_empty, damage_no_json, damage_deep, damage_no_table,
        damage_other_stage,
    ],
)  # fmt: skip
def test_damaged_entries_are_ignored_and_written_again(
    damage: object, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(damage)
    compiler = mesa_compiler()
    made = compiler.fragment(FRAGMENT, KEY)
    (path,) = objects(folder)
    whole = path.read_bytes()
    damage(path)
    assert path.read_bytes() != whole
    assert compiler.fragment(FRAGMENT, KEY) == made
    assert path.read_bytes() == whole
    no_compiler(monkeypatch)
    assert compiler.fragment(FRAGMENT, KEY) == made


def test_what_does_not_compile_is_not_kept(folder: Path) -> None:
    with pytest.raises(CompileError):
        mesa_compiler().fragment("FRAG\nnonsense\nEND\n", KEY)
    assert objects(folder) == []
