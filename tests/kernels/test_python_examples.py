"""The examples of kernels in Python, against numpy; each on both engines."""

import hashlib

import numpy as np
import pytest
from tests.kernels.python_examples import example

from vc4lab.kernels.python import PythonKernel

ENGINES = pytest.mark.parametrize("engine", ["jit", "interpreter"])


def kernel(module: str, name: str, engine: str) -> PythonKernel:
    found = getattr(example(module), name)
    assert isinstance(found, PythonKernel)
    found.engine = engine
    return found


@ENGINES
@pytest.mark.parametrize("qpus", [1, 3, 12])
def test_vector_add(qpus: int, engine: str) -> None:
    x = np.arange(16 * 7, dtype=np.float32)
    y = np.random.default_rng(1).integers(-99, 99, x.size).astype(np.float32)
    np.testing.assert_array_equal(kernel("vector_add", "vector_add", engine)(x, y, qpus=qpus), x + y)


@ENGINES
@pytest.mark.parametrize("name", ["saxpy", "saxpy_ahead"])
@pytest.mark.parametrize("qpus", [1, 3, 12])
def test_saxpy(qpus: int, name: str, engine: str) -> None:
    random = np.random.default_rng(qpus)
    x, y = random.integers(-99, 99, (2, 16 * 7)).astype(np.float32)
    np.testing.assert_array_equal(kernel("saxpy", name, engine)(x, y, a=3.0, qpus=qpus), 3 * x + y)


@ENGINES
def test_prefix_sums(engine: str) -> None:
    x = np.random.default_rng(2).integers(-99, 99, (5, 48)).astype(np.float32)
    found = kernel("prefix_sum", "prefix_sums", engine)(x, columns=48, qpus=3)
    np.testing.assert_array_equal(found, np.cumsum(x, axis=1))


@ENGINES
def test_histogram(engine: str) -> None:
    values = np.random.default_rng(3).integers(-3, 20, 16 * 9)
    before = np.arange(16)
    found = kernel("histogram", "histogram", engine)(values, before, qpus=5)
    inside = values[(values >= 0) & (values < 16)]
    np.testing.assert_array_equal(found, before + np.bincount(inside, minlength=16))


def mandelbrot_turns(width: int, height: int, left: float, top: float, step: float, most: int) -> np.ndarray:
    point = left + step * np.arange(width)[None] + 1j * (top - step * np.arange(height)[:, None])
    z, count = point.copy(), np.zeros(point.shape, int)
    alive = np.abs(z) <= 2
    for _ in range(most):
        z = np.where(alive, z * z + point, z)
        alive &= np.abs(z) <= 2
        count += alive
    return count


@ENGINES
def test_mandelbrot(engine: str) -> None:
    """Points near the edge leave a turn sooner or later: floats are rounded."""
    view = {"width": 48, "height": 20, "left": -2.2, "top": 1.2, "step": 0.06, "most": 20}
    found = kernel("mandelbrot", "mandelbrot", engine)(**view, qpus=7)
    wanted = mandelbrot_turns(**view)  # type: ignore[arg-type]
    assert np.mean(found == wanted) > 0.98
    assert len(np.unique(wanted)) > 10


@ENGINES
def test_fft(engine: str) -> None:
    random = np.random.default_rng(4)
    re, im = random.normal(size=(2, 5, 256)).astype(np.float32)
    found = kernel("fft", "fft", engine)(re, im, *example("fft").twiddles(), qpus=4)
    np.testing.assert_allclose(found[0] + 1j * found[1], np.fft.fft(re + 1j * im), atol=2e-4)


@ENGINES
def test_convolution(engine: str) -> None:
    random = np.random.default_rng(5)
    image = random.integers(-9, 9, (7, 34)).astype(np.float32)
    weights = random.integers(-9, 9, (3, 3)).astype(np.float32)
    found = kernel("convolution", "convolve", engine)(image, weights, width=32, height=5, qpus=2)
    wanted = sum(weights[j, i] * image[j : j + 5, i : i + 32] for j in range(3) for i in range(3))
    np.testing.assert_array_equal(found, wanted)


@ENGINES
def test_bitonic_sort(engine: str) -> None:
    x = np.random.default_rng(6).normal(size=(5, 64)).astype(np.float32)
    found = kernel("bitonic_sort", "sort_rows", engine)(x, qpus=2)
    np.testing.assert_array_equal(found, np.sort(x, axis=1))


@pytest.mark.parametrize(
    ("length", "engine"), [(0, "jit"), (3, "interpreter"), (55, "jit"), (56, "jit"), (200, "jit")]
)
def test_sha256(length: int, engine: str) -> None:
    messages = [bytes((i * k) & 255 for k in range(length)) for i in range(17)]
    kernel("sha256", "sha256_block", engine)
    assert example("sha256").sha256(messages, qpus=2) == [hashlib.sha256(m).digest() for m in messages]


@ENGINES
def test_layer(engine: str) -> None:
    random = np.random.default_rng(7)
    x = random.integers(-5, 5, (3, 6)).astype(np.float32)
    w = random.integers(-5, 5, (6, 32)).astype(np.float32)
    b = random.integers(-5, 5, 32).astype(np.float32)
    found = kernel("layer", "layer", engine)(x, w, b, samples=3, inputs=6, outputs=32, qpus=2)
    np.testing.assert_array_equal(found, np.maximum(x @ w + b, 0))


@pytest.mark.parametrize("shape", [(16, 4, 48), (33, 7, 100)])
def test_sgemm(shape: tuple[int, int, int]) -> None:
    random = np.random.default_rng(8)
    a = random.integers(-5, 5, shape[:2]).astype(np.float32)
    b = random.integers(-5, 5, shape[1:]).astype(np.float32)
    np.testing.assert_array_equal(example("sgemm").sgemm(a, b, qpus=3), a @ b)


def test_sgemm_takes_few_instructions() -> None:
    """A product and sum of 16 lanes takes one instruction, and little more around them.

    The sgemm of py-videocore 0.1 takes 7,071,950 for 96 x 363 times 363 x 3072, 1.057 of them each.
    """
    a, b = np.ones((96, 364), np.float32), np.ones((364, 480), np.float32)
    module = example("sgemm")
    np.testing.assert_array_equal(module.sgemm(a, b), np.full((96, 480), 364))
    assert module.product.report.instructions < 1.1 * 1.057 * a.size * 480 / 16
    kernel = module.product.assembly
    assert sum("fadd" in text and "fmul" in text for _, text in kernel.lines) > 170
