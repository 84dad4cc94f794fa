"""Texture sampling rates of one core: a 800x600 screen covered once by a texture, by kind."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from vc4lab.memory import GuestMemory
from vc4lab.records.texture import MinFilter, TextureConfig, TextureType, Wrap
from vc4lab.simd import (
    Function,
    Target,
    Value,
    build,
    const,
    f32,
    f32x16,
    host_target,
    i32,
    i32x16,
    ptr,
    staged,
    store,
    targets,
)
from vc4lab.v3d.tmu.sampler import sample
from vc4lab.v3d.tmu.texture_state import TextureKind, describe_texture

WIDTH, HEIGHT = 800, 600
BASE = 0x2000000


def screen_kernel(kind: TextureKind) -> Function:
    """Samples every pixel of the screen in 4x4 blocks; s, t are affine in x, y."""
    lane_x = [(lane >> 1 & 2) + (lane & 1) for lane in range(16)]
    lane_y = [(lane >> 2 & 2) + (lane >> 1 & 1) for lane in range(16)]

    @staged
    def body(
        descriptor: Value, memory: Value, sink: Value,
        s0: Value, sx: Value, sy: Value, t0: Value, tx: Value, ty: Value,
    ) -> None:  # fmt: skip
        zero = const(i32x16, 0)
        x_in_block = const(f32x16, [float(v) for v in lane_x])
        y_in_block = const(f32x16, [float(v) for v in lane_y])
        combined = zero
        for y in range(0, HEIGHT, 4):
            for x in range(0, WIDTH, 4):
                px = x_in_block + x.to_float(f32)
                py = y_in_block + y.to_float(f32)
                s = px * sx + py * sy + s0
                t = px * tx + py * ty + t0
                found = sample(kind, descriptor, memory, s.bitcast(i32), t.bitcast(i32), zero, zero)
                combined = combined ^ found
        store(sink, combined)

    return Function((ptr, ptr, ptr, f32, f32, f32, f32, f32, f32), None, body, name="screen")


def rate(
    config: TextureConfig, texels_per_pixel: float = 1.0, turn: float = 0.3,
    target: Target | None = None, repeats: int = 5,
) -> float:  # fmt: skip
    """Million samples per second, best of ``repeats`` frames."""
    ram = GuestMemory()
    noise = np.random.default_rng(1).integers(0, 256, 8 << 20, np.uint8)
    ram.write(BASE - (4 << 20), noise.tobytes())
    kind, descriptor = describe_texture(*config.parameters())
    module = build(
        "texture-bench", {"screen": screen_kernel(kind)}, target=target or host_target(),
        float_mode="qpu",
    )  # fmt: skip
    sink = np.zeros(16, np.uint32)
    cos, sin = np.cos(turn) * texels_per_pixel, np.sin(turn) * texels_per_pixel
    steps = (
        0.1, cos / config.width, -sin / config.width, 0.2, sin / config.height, cos / config.height,
    )  # fmt: skip
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        module["screen"](descriptor.address, ram.base, sink.ctypes.data, *(float(step) for step in steps))
        best = min(best, time.perf_counter() - start)
    return WIDTH * HEIGHT / best / 1e6


def run() -> list[dict[str, Any]]:
    """Rows of the common table."""
    linear, nearest = {"mag_filter": 0, "min_filter": 0}, {"mag_filter": 1, "min_filter": 1}
    square: dict[str, Any] = {"base": BASE, "width": 256, "height": 256}
    trilinear = {"levels": 9, "min_filter": MinFilter.LINEAR_MIP_LINEAR, "mag_filter": 0}
    clamp = {"wrap_s": Wrap.CLAMP, "wrap_t": Wrap.CLAMP}
    cases: list[tuple[str, TextureConfig, float]] = [
        ("nearest RGBA8888 T", TextureConfig(**square, **nearest), 1.0),
        ("bilinear RGBA8888 T", TextureConfig(**square, **linear), 1.0),
        ("bilinear RGBA8888 T, magnified 4x", TextureConfig(**square, **linear), 0.25),
        ("bilinear RGBA8888 T, minified 4x", TextureConfig(**square, **linear), 4.0),
        (
            "bilinear RGBA8888 800x600 clamp",
            TextureConfig(base=BASE, width=800, height=600, **linear, **clamp),
            1.0,
        ),
        ("bilinear RGB565 T", TextureConfig(type=TextureType.RGB565, **square, **linear), 1.0),
        ("bilinear A8 T", TextureConfig(type=TextureType.ALPHA, **square, **linear), 1.0),
        ("bilinear ETC1", TextureConfig(type=TextureType.ETC1, **square, **linear), 1.0),
        ("trilinear RGBA8888 T", TextureConfig(**square, **trilinear), 1.5),
    ]
    rows = [
        {"name": f"texture: {name}", "value": rate(config, scale), "unit": "M samples/s"}
        for name, config, scale in cases
    ]
    for target in targets():
        if target.level != host_target().level:
            value = rate(TextureConfig(**square, **linear), target=target)
            name = f"texture: bilinear RGBA8888 T, {target.level} code"
            rows.append({"name": name, "value": value, "unit": "M samples/s"})
    return rows
