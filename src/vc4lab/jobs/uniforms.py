"""The uses of a program's uniforms: for listings, tables and notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from vc4lab.records.texture import TextureConfig

if TYPE_CHECKING:
    from vc4lab.memory import GuestMemory
    from vc4lab.qpu.program.program import Program

PARAMETERS = 4
"""Words of a texture request, at most."""


class UniformUse(NamedTuple):
    """A word of a program's uniforms, in the order of the text.

    Attributes
    ----------
    is_plain
        Whether the program reads it itself; else it is a parameter of a texture request.
    what
        Which one, in words.
    texture
        Of the last parameter of a request: what is sampled, and its parameters.
    request
        The numbers of the words of that request.
    """

    number: int
    word: int
    is_plain: bool
    what: str
    texture: TextureConfig | None = None
    parameters: tuple[int, ...] = ()
    request: tuple[int, ...] = ()


def uniform_uses(memory: GuestMemory, program: Program, uniforms: int) -> list[UniformUse]:
    """Every word that a program takes. Words outside of memory count as 0."""
    sites = program.uniform_sites
    words = [memory.u32(uniforms + 4 * number) for number in range(len(sites))]
    complete = {request.uniforms[-1]: request for request in program.texture_requests if request.uniforms}
    found = []
    for site, word in zip(sites, words, strict=True):
        if site.kind == "uniform":
            what = f"read at {program.address_of(site.instruction_index):08x}"
            found.append(UniformUse(site.index, word, True, what))
            continue
        what = f"TMU{site.unit} request {site.request} parameter {site.parameter}"
        request = complete.get(site.index)
        if request is None:
            found.append(UniformUse(site.index, word, False, what))
            continue
        numbers = tuple(request.uniforms)
        held = [words[number] for number in numbers[:PARAMETERS] if number < len(words)]
        parameters = tuple([*held, 0, 0, 0, 0][:PARAMETERS])
        config = TextureConfig.parse(*parameters)
        found.append(UniformUse(site.index, word, False, what, config, parameters, numbers))
    return found
