"""The programs of a draw: listing, uniforms, textures, and a run's registers in all lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.debug.shaders.listing import LINE_BITS
from vc4lab.jobs.fields_text import word_text
from vc4lab.jobs.uniforms import uniform_uses
from vc4lab.qpu.program.reader import program_at
from vc4lab.qpu.text.disassembler import disassemble

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vc4lab.debug.frame.capture import CapturedFrame
    from vc4lab.debug.frame.index import FrameDraw
    from vc4lab.debug.frame.watch import ProgramStep
    from vc4lab.debug.shaders.listing import KnownProgram
    from vc4lab.qpu.program.program import Program
    from vc4lab.records.texture import TextureConfig
    from vc4lab.viewer.inside.views import JobLists

    Programs = Mapping[tuple[int, ...], KnownProgram]

MOST_INSTRUCTIONS = 4096
MOST_STEPS = 20_000
"""Instructions of a run that are handed out."""
LANES = 16
LINE = (1 << LINE_BITS) - 1
STAGES = ("fragment", "vertex", "coordinate")


def places_of(draw: FrameDraw, stage: str) -> tuple[int, int]:
    """Return where a program of a draw and its uniforms lie. Raises NoSuchPlace."""
    shader = draw.shader
    if shader is not None and stage == "fragment":
        return shader.code, shader.uniforms
    if shader is None or shader.gl is None:
        raise NoSuchPlace(f"draw {draw.number} has no {stage} program")
    record = shader.gl.record
    if stage == "vertex":
        return int(record.vs_code), int(record.vs_uniforms)
    return int(record.cs_code), int(record.cs_uniforms)


def drawn(frame: CapturedFrame, number: int) -> FrameDraw:
    """Return a draw of a frame. Raises NoSuchPlace."""
    if not 1 <= number <= len(frame.draws):
        raise NoSuchPlace(f"frame {frame.number} has no draw {number}: it has {len(frame.draws)}")
    return frame.draws[number - 1]


def program_document(
    frame: CapturedFrame, number: int, stage: str, lists: JobLists, programs: Programs
) -> dict[str, Any]:
    """Return a program of a draw: instructions, uniforms, textures, source.

    Raises NoSuchPlace, CaptureError.
    """
    draw = drawn(frame, number)
    code, uniforms = places_of(draw, stage)
    memory = frame.stage.memory
    program = program_at(memory, code, limit=MOST_INSTRUCTIONS)
    known = programs.get(program.words)
    of_words = known.lines if known is not None else ()
    return {
        "draw": number,
        "stage": stage,
        "address": code,
        "uniforms_address": uniforms,
        "lines": [
            {
                "address": code + 8 * index,
                "word": f"{word:016x}",
                "text": disassemble(word, code + 8 * index),
                "line": _line(lists, "program", code + 8 * index),
                "source": [line & LINE for line in of_words[index]] if index < len(of_words) else [],
            }
            for index, word in enumerate(program.words)
        ],
        "problems": [one.message for one in program.problems],
        "uniforms": _uniforms(frame, program, uniforms, lists, known),
        "textures": [
            {"request": request, "text": config.text()}
            for request, config in requests_of(frame, program, uniforms)
        ],
        "source": None if known is None else {"name": known.name, "lines": known.text.splitlines()},
    }


def requests_of(frame: CapturedFrame, program: Program, uniforms: int) -> list[tuple[int, TextureConfig]]:
    """Return the texture of each request of a program, with the number of the request's first uniform."""
    uses = uniform_uses(frame.stage.memory, program, uniforms)
    return [(one.request[0], one.texture) for one in uses if one.texture is not None and len(one.request) > 1]


def _line(lists: JobLists, kind: str, address: int) -> list[int] | None:
    """The view and the line that an edit of an address goes to."""
    found = lists.find(kind, address)
    return None if found is None else list(found)


def _uniforms(
    frame: CapturedFrame, program: Program, address: int, lists: JobLists, known: KnownProgram | None
) -> list[dict[str, Any]]:
    """The words of a program's uniforms, and what each is for; in its compiler's words too."""
    meanings = known.uniforms if known is not None else ()
    return [
        {
            "index": one.number,
            "address": address + 4 * one.number,
            "word": f"{one.word:08x}",
            "value": word_text(one.word) if one.is_plain else f"0x{one.word:08x}",
            "what": one.what,
            "meaning": meanings[one.number] if one.number < len(meanings) else "",
            "instruction": site.instruction_index,
            "line": _line(lists, "uniforms", address + 4 * one.number),
        }
        for one, site in zip(
            uniform_uses(frame.stage.memory, program, address), program.uniform_sites, strict=True
        )
    ]


def steps_document(steps: Sequence[ProgramStep], lane: int, base: int, code: int) -> dict[str, Any]:
    """Return a run: of each instruction its place in the program, and what it wrote in all lanes.

    base: the address in the steps that stands for `code`.
    """
    return {
        "lane": lane,
        "total": len(steps),
        "steps": [
            {
                "index": (one.address - base) // 8,
                "address": one.address - base + code,
                "text": one.text,
                "writes": [
                    [name, [word & 0xFFFFFFFF for word in value], _bits(mask)]
                    for name, value, mask in one.writes
                ],
            }
            for one in steps[:MOST_STEPS]
        ],
    }


def _bits(mask: tuple[bool, ...] | None) -> int:
    """Lanes as bits; all of them without a mask."""
    return (1 << LANES) - 1 if mask is None else sum(bool(on) << lane for lane, on in enumerate(mask))
