"""Lists for `compile` the programs of shaders, with their lines and clocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from vc4lab.cli.exit_codes import failed

if TYPE_CHECKING:
    from vc4lab.driver.compiler.interface import CompiledShader, Varying
    from vc4lab.driver.compiler.tgsi.program import Program
    from vc4lab.driver.glsl.load import LoadedShader
    from vc4lab.mesa.protocol.objects import BlendTarget
    from vc4lab.qpu.text.assembly import Assembly
    from vc4lab.timing.chip import Chip
    from vc4lab.timing.graphics.result import ShaderUse


class StageName(Enum):
    """The programs of a draw."""

    FRAGMENT = "fragment"
    VERTEX = "vertex"
    COORDINATE = "coordinate"


@dataclass(frozen=True)
class Flags:
    """The state that a shader is compiled for, and what the compiler may do."""

    blend: bool = False
    depth: bool = True
    unroll: bool = True
    threads: bool = True

    def changed(self, text: str) -> Flags:
        """These with others, as "no-depth, blend". Raises ValueError."""
        values = dict(vars(self))
        for word in text.replace(",", " ").split():
            name = word.removeprefix("--").removeprefix("no-")
            if name not in values:
                raise ValueError(f"{word!r} is none of {', '.join(values)}, each also with no-")
            values[name] = not word.removeprefix("--").startswith("no-")
        return Flags(**values)

    @property
    def blending(self) -> BlendTarget | None:
        """Source alpha, 1 - source alpha."""
        from vc4lab.mesa.protocol.codes import BlendFactor, BlendFunc
        from vc4lab.mesa.protocol.objects import BlendTarget

        source, rest = BlendFactor.SRC_ALPHA, BlendFactor.INV_SRC_ALPHA
        rule = BlendTarget(
            blend_enable=True, colormask=15,
            rgb_func=BlendFunc.ADD, rgb_src_factor=source, rgb_dst_factor=rest,
            alpha_func=BlendFunc.ADD, alpha_src_factor=source, alpha_dst_factor=rest,
        )  # fmt: skip
        return rule if self.blend else None


@dataclass(frozen=True)
class Listed:
    """A program to list.

    Attributes
    ----------
    name
        The file, for comparisons with flags.
    shader
        The program; None: only its words are known.
    source
        Lines of the text that it comes from; GLSL or TGSI.
    lines
        For each word the lines of the source.
    tgsi
        For each word the lines of the TGSI text, if that is not the source.
    """

    name: str
    words: tuple[int, ...]
    shader: CompiledShader | None = None
    source: list[str] = field(default_factory=list)
    lines: list[tuple[int, ...]] = field(default_factory=list)
    tgsi: list[tuple[int, ...]] = field(default_factory=list)
    use: ShaderUse | None = None
    """Its use of the chip; None: that is not asked for."""

    @property
    def stage(self) -> str:
        """Which program it is."""
        return self.shader.stage.value if self.shader is not None else "?"

    def assembly(self) -> Assembly:
        """As what assemblers make: words with the lines of their source."""
        from vc4lab.qpu.text.assembly import Assembly
        from vc4lab.qpu.text.disassembler import disassemble

        rows, last = [], 1
        for index, word in enumerate(self.words):
            lines = self.lines[index] if index < len(self.lines) else ()
            last = max(lines, default=last)
            rows.append((last, f"{disassemble(word, 8 * index):<40} {self.text_of(lines)}".rstrip()))
        return Assembly(self.words, {}, lines=tuple(rows))

    def text_of(self, lines: tuple[int, ...]) -> str:
        """Numbers of lines, and the text of the last."""
        if not lines:
            return ""
        text = self.source[lines[-1] - 1].strip() if lines[-1] <= len(self.source) else ""
        return f"{','.join(map(str, lines))}: {text}"


def programs_of(
    loaded: LoadedShader, stage: StageName | None, flags: Flags, chip: tuple[Chip, str] | None
) -> Iterator[Listed]:
    """The programs of a shader: those of the stage, or all that are usual.

    Raises TgsiError, TooComplex, NotTimed.
    """
    from vc4lab.driver.compiler.compile import Choices
    from vc4lab.driver.glsl.lines import split_lines
    from vc4lab.driver.shader_clocks import clocks_of

    stages = stages_of(loaded, stage)
    if not stages:
        return
    uses: dict[str, ShaderUse] = {}
    varyings: tuple[Varying, ...] = ()
    if chip is not None:
        choices = Choices(flags.unroll, flags.threads)
        uses, varyings = clocks_of(
            loaded.program, *chip, blend=flags.blending, depth=flags.depth, choices=choices
        )
    for one in stages:
        shader = compiled(loaded.program, one, flags, loaded, varyings)
        pairs = split_lines(shader.lines)
        pairs += [((), ())] * (len(shader.words) - len(pairs))
        use = uses.get(one.value)
        if use is not None and not _is_of(use, shader):
            use = None
        is_glsl = loaded.lines is not None
        yield Listed(
            loaded.file.name,
            shader.words,
            shader,
            loaded.source,
            [glsl if is_glsl else tgsi for tgsi, glsl in pairs],
            [tgsi for tgsi, _ in pairs] if is_glsl else [],
            use,
        )


def _is_of(use: ShaderUse, shader: CompiledShader) -> bool:
    """Whether what was timed is this program: the draw's state is not always the listing's."""
    from vc4lab.qpu.text.disassembler import disassemble

    texts = [" ".join(disassemble(word, use.code + 8 * n).split("  #")[0].split())
             for n, word in enumerate(shader.words)]  # fmt: skip
    return [one.text for one in use.hot] == texts


def stages_of(loaded: LoadedShader, stage: StageName | None) -> list[StageName]:
    """Which programs a shader has, of those that are asked for."""
    if loaded.program.stage == "FRAG":
        return [StageName.FRAGMENT] if stage in (None, StageName.FRAGMENT) else []
    if stage is None:
        return [StageName.VERTEX]
    return [] if stage is StageName.FRAGMENT else [stage]


def compiled(
    program: Program,
    stage: StageName,
    flags: Flags,
    loaded: LoadedShader | None = None,
    order: tuple[Varying, ...] = (),
) -> CompiledShader:
    """The program with state as a simple draw has it: attributes of floats, an RGBA8888 buffer.

    order: of the varyings that a vertex program gives, if it is not that of the text.
    """
    from vc4lab.driver.compiler.compile import Choices, compile_fragment, compile_vertex
    from vc4lab.driver.compiler.interface import ColorTarget, FragmentKey, Varying, VertexKey
    from vc4lab.driver.compiler.tgsi.program import File
    from vc4lab.mesa.protocol.formats import Format

    lines = loaded.lines if loaded is not None else None
    choices = Choices(flags.unroll, flags.threads, lines.mark if lines is not None else None)
    if stage is StageName.FRAGMENT:
        color = ColorTarget(blend=flags.blending)
        return compile_fragment(program, FragmentKey(color=color, writes_z=flags.depth), choices)
    declared = program.declarations
    elements = max((one.last + 1 for one in declared if one.file is File.IN), default=0)
    varyings = tuple(
        Varying(one.semantic.name, one.semantic.index + number - one.first, component)
        for one in declared
        if one.file is File.OUT and one.semantic is not None
        if one.semantic.name not in ("POSITION", "PSIZE")
        for number in range(one.first, one.last + 1)
        for component in range(4)
        if "xyzw"[component] in one.mask
    )
    formats = (int(Format.R32G32B32A32_FLOAT),) * elements
    both = compile_vertex(program, VertexKey(formats=formats, varyings=order or varyings), choices)
    return both.vertex if stage is StageName.VERTEX else both.coordinate


def need_some(found: list[Listed], stage: StageName | None, files: list[LoadedShader]) -> None:
    """Raises typer.Exit if no shader has the stage."""
    if not found:
        kinds = " and ".join(one.program.stage for one in files)
        asked = stage.value if stage is not None else "?"
        raise failed(f"{files[0].file.name}: the text is a {kinds} shader, no {asked} program")
