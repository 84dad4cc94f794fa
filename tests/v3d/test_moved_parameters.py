"""Texture parameters follow the uniform pointer, wherever a fragment program has moved it."""

import struct

import numpy as np
import pytest
from tests.support.frames import BACKGROUND, Frame

from vc4lab.records.control import build
from vc4lab.records.texture import TextureConfig, TextureType

SIDE = 64
TEXELS = 16
ENGINES = [{}, {"threads": 1}, {"engine": "interpreter"}]
PLACE = """
    itof r0, x_coord
    itof r1, y_coord
    ldi r2, 0x3c800000      # 1 / 64
    nop ; fmul r0, r0, r2
    nop ; fmul r1, r1, r2
"""
SAMPLE = "mov t0t, r1\nmov t0s, r0\nnop ; nop ; ldtmu0\n"
OUT = "sbwait\nmov tlbc, r4 ; nop ; thrend\nnop\nnop ; nop ; sbdone"
BY_COLUMN = """
    mov r2, x_coord
    ldi r3, 32
    sub.setf -, r2, r3
"""


class Scene(Frame):
    """A square of 64x64 pixels, two textures of 16x16 texels, their parameters apart."""

    def __init__(self, **options: object) -> None:
        super().__init__(SIDE, SIDE, **options)
        rng = np.random.default_rng(5)
        self.textures = rng.integers(0, 1 << 32, (2, TEXELS, TEXELS), np.uint32)
        self.parameters = [self.texture(image) for image in self.textures]
        self.far = [self.job.put(struct.pack("<2I", *words)) for words in self.parameters]

    def texture(self, image: np.ndarray, **changes: int) -> tuple[int, int]:
        """P0 and P1 of an image, in 4x4 tiles."""
        tiled = image.reshape(4, 4, 4, 4).swapaxes(1, 2)
        base = self.job.room(4096 + TEXELS * TEXELS * 4)
        base = (base + 4095) & ~4095
        self.job.memory.write(base, tiled.tobytes())
        config = TextureConfig(base=base, width=TEXELS, height=TEXELS, **changes)
        return config.parameters()[:2]

    def draw(self, program: str, uniforms: list[int], frames: int = 3) -> np.ndarray:
        """The picture of a square that covers the frame; the same one `frames` times."""
        stream = self.job.put(struct.pack(f"<{len(uniforms)}I", *uniforms))
        body = self.square(program, stream)
        for _ in range(frames):
            picture = self.bin(body)
        return picture

    def square(self, program: str, stream: int) -> bytes:
        """Records that draw it."""
        corners = [(0, 0), (SIDE, 0), (SIDE, SIDE), (0, 0), (SIDE, SIDE), (0, SIDE)]
        vertices = b"".join(struct.pack("<hhff", 16 * x, 16 * y, 0.5, 1.0) for x, y in corners)
        shader = self.nv_shader(program, vertices, uniforms=stream)
        window = build(102, left=0, bottom=0, width=SIDE, height=SIDE)
        state = build(96, enable_forward=1, enable_reverse=1, depth_test=7) + build(103)
        return window + state + shader + build(33, mode=4, length=6)

    def seen(self, number: int) -> np.ndarray:
        """The square with one of the textures."""
        return np.kron(self.textures[number], np.ones((4, 4), np.uint32))


def halves(scene: Scene) -> np.ndarray:
    """Texture 0 in columns below 32, texture 1 beyond."""
    return np.where(np.arange(SIDE) < 32, scene.seen(0), scene.seen(1))


@pytest.mark.parametrize("options", ENGINES, ids=str)
def test_by_a_uniform(options: dict[str, object]) -> None:
    scene = Scene(**options)
    text = "mov r3, unif\nnop\nmov unif_addr, r3\n" + PLACE + SAMPLE + OUT
    # What lies at the old place would be no texture at all.
    for number in (1, 0):
        stream = [scene.far[number], 0xFF00FF00, 0xFFFFFF00, 0xFFFFFFFF]
        assert (scene.draw(text, stream) == scene.seen(number)).all()
    assert not scene.reporter.items


@pytest.mark.parametrize("options", ENGINES, ids=str)
def test_by_a_number_in_the_program(options: dict[str, object]) -> None:
    scene = Scene(**options)
    text = f"ldi r3, {scene.far[1] - 8}\nadd r3, r3, 8\nmov unif_addr, r3\n"
    text += PLACE + SAMPLE + OUT
    assert (scene.draw(text, [0xFF00FF00] * 4) == scene.seen(1)).all()
    assert not scene.reporter.items


@pytest.mark.parametrize("options", ENGINES, ids=str)
def test_the_pointer_in_memory_changes(options: dict[str, object]) -> None:
    """From frame to frame, while native code knows the draw."""
    scene = Scene(**options)
    text = "mov r3, unif\nnop\nmov unif_addr, r3\n" + PLACE + SAMPLE + OUT
    stream = scene.job.put(bytes(16))
    body = scene.square(text, stream)
    for number in (0, 0, 0, 1, 1, 0, 0):
        scene.job.memory.write(stream, struct.pack("<I", scene.far[number]))
        assert (scene.bin(body) == scene.seen(number)).all()
    assert not scene.reporter.items


@pytest.mark.parametrize("options", ENGINES, ids=str)
def test_by_what_a_program_computes(options: dict[str, object]) -> None:
    """The pointer depends on the column of lane 0: no one knows it before the program runs."""
    scene = Scene(**options)
    text = BY_COLUMN + "mov r3, unif\nmov r2, unif\nmov.ns r2, r3\nnop\nmov unif_addr, r2\n"
    text += PLACE + SAMPLE + OUT
    assert (scene.draw(text, [*scene.far, 0, 0]) == halves(scene)).all()
    assert not scene.reporter.items


@pytest.mark.parametrize("options", ENGINES, ids=str)
def test_by_a_conditional_write(options: dict[str, object]) -> None:
    """The pointer moves where the condition holds in lane 0; else it stays."""
    scene = Scene(**options)
    text = BY_COLUMN + "mov r3, unif\nmov.ns unif_addr, r3\nnop\nnop\n" + PLACE + SAMPLE + OUT
    assert (scene.draw(text, [scene.far[0], *scene.parameters[1]]) == halves(scene)).all()
    assert not scene.reporter.items


@pytest.mark.parametrize("options", ENGINES, ids=str)
def test_by_the_way_taken(options: dict[str, object]) -> None:
    """A branch leaves out reads of uniforms: the parameters come from where the pointer is."""
    scene = Scene(**options)
    text = PLACE + BY_COLUMN + "brr.alln -, there\nnop\nnop\nnop\nmov r2, unif\nmov r2, unif\n"
    text += "there: " + SAMPLE + OUT
    assert (scene.draw(text, [*scene.parameters[0], *scene.parameters[1]]) == halves(scene)).all()
    assert not scene.reporter.items


@pytest.mark.parametrize("options", ENGINES, ids=str)
def test_in_a_loop(options: dict[str, object]) -> None:
    """Each round has the next texture; a reset of the pointer as drivers do it keeps one."""
    scene = Scene(**options)
    both = [*scene.parameters[0], *scene.parameters[1]]
    text = PLACE + "ldi ra2, 0\nmov ra1, 2\nagain: " + SAMPLE
    text += "sub.setf ra1, ra1, 1\nxor ra2, ra2, r4\nbrr.anynz -, again\nnop\nnop\nnop\n"
    out = "mov r0, ra2\nsbwait\nmov tlbc, r0 ; nop ; thrend\nnop\nnop ; nop ; sbdone"
    assert (scene.draw(text + out, both) == (scene.seen(0) ^ scene.seen(1))).all()
    assert not scene.reporter.items


def test_a_wide_result_is_reported() -> None:
    pictures = []
    for options in ENGINES:
        scene = Scene(**options)
        wide = scene.texture(scene.textures[0], type=TextureType.RGBA64)
        place = scene.job.put(struct.pack("<4I", *wide, *wide))
        text = BY_COLUMN + "mov r3, unif\nadd r2, r3, 8\nmov.ns r2, r3\nnop\nmov unif_addr, r2\n"
        pictures.append(scene.draw(text + PLACE + SAMPLE + OUT, [place]))
        assert {item.code for item in scene.reporter.items} == {"TMU-012"}
    assert (pictures[0] == pictures[1]).all()
    assert (pictures[0] == pictures[2]).all()


def test_too_many_textures_are_reported() -> None:
    """Every block of two squares has a texture of its own."""
    scene = Scene()
    base, other = scene.parameters[0]
    words = np.tile(np.array([base, other], np.uint32), (2 * SIDE * SIDE, 1))
    words[:, 0] += np.arange(2 * SIDE * SIDE, dtype=np.uint32) << 12
    table = scene.job.put(words.tobytes())
    text = "mov r2, x_coord\nshl r2, r2, 6\nadd r2, r2, y_coord\nshl r2, r2, 3\n"
    text += "add r2, r2, unif\nmov unif_addr, r2\n" + PLACE + SAMPLE + OUT
    streams = [scene.job.put(struct.pack("<I", table + 8 * SIDE * SIDE * k)) for k in range(2)]
    body = b"".join(scene.square(text, stream) for stream in streams)
    for _ in range(3):
        scene.bin(body)
    assert {item.code for item in scene.reporter.items} == {"TMU-013"}


@pytest.mark.parametrize("where", [0xFFFFFFFF, 0x3FFFFFFC, 0x3FFFFFFE, 0x80000001, 0])
@pytest.mark.parametrize("how", ["uniform", "computed"])
def test_any_place_is_inside_memory(where: int, how: str) -> None:
    pictures = []
    for options in ENGINES:
        scene = Scene(**options)
        text = "mov r3, unif\nmov r2, r3\n"
        if how == "computed":
            text = BY_COLUMN + text + "mov.ns r2, r3\n" + "add.ns r2, r3, 4\n"
        text += "nop\nmov unif_addr, r2\n" + PLACE + SAMPLE + OUT
        pictures.append(scene.draw(text, [where, 0, 0, 0], frames=2))
    assert (pictures[0] == pictures[1]).all()
    assert (pictures[0] == pictures[2]).all()
    assert not (pictures[0] == BACKGROUND).all()


COORDINATES = """
    ldi vr_setup, 0x201a00
    ldi vw_setup, 0x1a00
    mov r0, vpm ; nop
    mov r1, vpm ; nop
    mov vpm, 0 ; nop
    mov vpm, 0 ; nop
    mov vpm, 0 ; nop
    mov vpm, 1.0 ; nop
    mov vpm, r0 ; nop
    mov vpm, 0.5 ; nop
    mov vpm, 1.0 ; nop
    nop ; nop ; thrend
    nop
    nop
"""
VERTICES = """
    ldi vr_setup, 0x201a00
    ldi vw_setup, 0x1a00
    mov r3, vpm ; nop
    mov r0, vpm ; nop
    {move}
    nop
    mov unif_addr, r2
    mov t0t, r0 ; nop
    mov t0s, r0 ; nop
    mov vpm, r3 ; nop
    mov vpm, 0.5 ; nop
    mov vpm, 1.0 ; nop
    nop ; nop ; ldtmu0
    mov vpm, r4 ; nop
    nop ; nop ; thrend
    nop
    nop
"""
RED_VARYING = """
    nop ; fmul r0, vary, ra15
    fadd r0, r0, r5 ; nop
    nop ; mov r3.8a, r0
    sbwait
    mov tlbc, r3 ; nop ; thrend
    nop
    nop ; nop ; sbdone
"""


@pytest.mark.parametrize("options", ENGINES, ids=str)
@pytest.mark.parametrize("move", ["mov r2, unif", "mov r2, unif\nadd r2, r2, elem_num"])
def test_in_vertex_shaders(move: str, options: dict[str, object]) -> None:
    """Each texture is full of one number, which becomes the red of the square."""
    scene = Scene(**options)
    job = scene.job
    corners = [(0, 0), (SIDE, 0), (SIDE, SIDE), (0, 0), (SIDE, SIDE), (0, SIDE)]
    arrays = b"".join(struct.pack("<hhf", 16 * x, 16 * y, 0.25) for x, y in corners)
    levels = (0.25, 0.75)
    filled = [np.full((TEXELS, TEXELS), struct.unpack("<I", struct.pack("<f", level))[0])
              for level in levels]  # fmt: skip
    far = [job.put(struct.pack("<2I", *scene.texture(image.astype(np.uint32)))) for image in filled]
    stream = job.put(bytes(16))
    record = struct.pack("<HBBII", 1, 0, 1, job.program(RED_VARYING), 0)
    for text in (VERTICES.format(move=move), COORDINATES):
        record += struct.pack("<HBBII", 0, 1, 8, job.program(text), stream)
    record += struct.pack("<IBBBB", job.put(arrays + bytes(64)), 7, 8, 0, 0)
    shader = build(64, address=job.put(record), attributes=1)
    window = build(102, left=0, bottom=0, width=SIDE, height=SIDE)
    state = build(96, enable_forward=1, enable_reverse=1, depth_test=7) + build(103)
    body = window + state + shader + build(33, mode=4, length=6)
    for number in (0, 0, 1, 1, 0):
        job.memory.write(stream, struct.pack("<4I", far[number], 0xFF00FF00, 0xFFFFFF00, 0xFFFF))
        red = scene.bin(body) & 0xFF
        assert np.abs(red.astype(int) - 255 * levels[number]).max() <= 1
    assert not scene.reporter.items
