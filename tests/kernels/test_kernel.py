"""QPU programs as functions: arrays in and out, uniforms by name, what is refused."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import vc4lab
from vc4lab.kernels import InterfaceError, Kernel, KernelError, KernelWarning
from vc4lab.kernels.interface import parse, value_of
from vc4lab.qpu.text.assembler import AssemblyError, assemble

QPU = vc4lab.examples() / "qpu"
STORE = """
        ldi  r1, 0x1a00
        add  vw_setup, r1, qpu_num
        nop
        {value}
        ldi  r1, 0x80904000
        mov  r0, qpu_num
        shl  r0, r0, 7
        add  vw_setup, r1, r0
        mov  vw_addr, unif
        mov  -, vw_wait
        nop ; nop ; thrend
        nop
        nop
"""
"""Stores a vector that `value` writes to the VPM at the address that is the last uniform."""


def program(value: str, interface: str) -> str:
    comments = "".join(f"# {line}\n" for line in interface.splitlines())
    return comments + STORE.format(value=value)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("qpus", [1, 3, 12])
def test_saxpy(qpus: int, engine: str) -> None:
    random = np.random.default_rng(qpus)
    x = random.integers(-99, 99, 16 * 7).astype(np.float32)
    y = random.integers(-99, 99, 16 * 7).astype(np.float32)
    before = y.copy()
    saxpy = vc4lab.Kernel(QPU / "saxpy.qasm", engine=engine)
    np.testing.assert_array_equal(saxpy(x, y, a=3.0, qpus=qpus), 3 * x + y)
    np.testing.assert_array_equal(y, before)
    assert saxpy.report is not None
    assert saxpy.report.completed == qpus


def test_the_matrix_product_of_the_examples() -> None:
    """A source that says nothing of its interface; B comes as uniforms, one by one."""
    random = np.random.default_rng(1)
    a = random.integers(-9, 9, (3, 16)).astype(np.float32)  # one vector is looked up ahead
    b = random.integers(-9, 9, (2, 64))
    stream = ", ".join(f"{value}.0" if value >= 0 else f"-{-value}.0" for value in b.ravel())
    kernel = Kernel(
        QPU / "sgemm.qasm",
        interface=f"kernel sgemm(a: float[], out c: float[64, 16])\nuniforms a, len(a) - 1, {stream}, c",
    )
    np.testing.assert_array_equal(kernel(a), (a[:2].T @ b).T)


def test_timing_is_that_of_the_model() -> None:
    saxpy = Kernel(QPU / "saxpy.qasm")
    x = np.ones(160, np.float32)
    one, many = (saxpy.timing(x, x, a=1.0, qpus=qpus).clocks for qpus in (1, 10))
    assert one > 2 * many


def test_types_shapes_and_defaults() -> None:
    source = program(
        "add vpm, elem_num, unif", "kernel f(n: int = -5, out z: int[4, k], k: int = 2 * 2)\nuniforms n, z"
    )
    found = Kernel(source)()
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, np.arange(16).reshape(4, 4) - 5)
    np.testing.assert_array_equal(Kernel(source)(n=-(1 << 31)).ravel()[0], -(1 << 31))


def test_several_results_and_one_of_anothers_shape() -> None:
    source = program("mov vpm, unif", "kernel f(x: byte[], out a: uint[16], out b: byte[x])\nuniforms 7, a")
    a, b = Kernel(source)(np.zeros((3, 5), int))
    assert (a == 7).all()
    assert (b.shape, b.dtype, b.any()) == ((3, 5), np.uint8, False)


def test_each_qpu_has_its_own_uniforms() -> None:
    source = program("mov vpm, unif", "kernel f(out z: int[16*4])\nuniforms 100*qpu + qpus, z+64*qpu")
    np.testing.assert_array_equal(
        Kernel(source)(qpus=4).reshape(4, 16), np.repeat([4, 104, 204, 304], 16).reshape(4, 16)
    )


def test_words_with_an_interface() -> None:
    words = assemble(STORE.format(value="mov vpm, 3")).words
    kernel = Kernel(words, interface="kernel f(out z: int[16])")
    assert kernel().tolist() == [3] * 16
    assert repr(kernel) == f"<Kernel f(out z: int[16]): {len(words)} instructions>"


def test_what_a_notebook_shows() -> None:
    shown = Kernel(QPU / "saxpy.qasm")._repr_html_()
    assert "<b>saxpy(x: float[], inout y: float[], a: float)</b>" in shown
    assert "brr.anynz -, next" in shown
    assert "<pre>" in shown


def test_errors_of_the_program() -> None:
    out = program("mov vpm, 1", "kernel f(out z: int[4])")  # it stores 64 bytes
    with pytest.raises(KernelError, match="QPU-063"):
        Kernel(out)()
    waits = "# kernel f(n: int)\nsacq -, 3\nnop ; nop ; thrend\nnop\nnop\n"
    with pytest.raises(KernelError, match="f does not end"):
        Kernel(waits)(1)
    floats = program("fadd vpm, unif, 1.0", "kernel f(n: int, out z: float[16])")
    with pytest.warns(KernelWarning, match="QPU-069"):
        Kernel(floats)(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        floats = floats.replace("n: int", "n: float")
        assert Kernel(floats)(2).tolist() == [3.0] * 16


@pytest.mark.parametrize(
    ("values", "named", "message"),
    [
        ((), {}, "x is missing: an array of float"),
        (([1.0],), {}, "y is missing"),
        (([1.0], [1.0]), {}, "a is missing"),
        (([1.0], [1.0], "b"), {}, "a: str is no float"),
        (([1.0], [1.0], 1.0, 2.0), {}, "4 arguments are too many"),
        (([1.0], [1.0]), {"b": 1}, "b is no argument"),
        (([1.0], [1.0], 1.0), {"a": 1.0}, "a is given twice"),
        ((["a"], [1.0], 1.0), {}, "x: an array of <U1; the kernel takes float"),
        (([1j], [1.0], 1.0), {}, "x: an array of complex128"),
        (([], [1.0], 1.0), {}, "x: an array of shape .* has no bytes"),
        (([[1.0], [1.0, 2.0]], [1.0], 1.0), {}, "x: "),
        (([1.0], [1.0], 1e40), {}, "a: 1e\\+40 is too large for a float"),
    ],
)
def test_arguments_that_do_not_fit(
    values: tuple[object, ...], named: dict[str, object], message: str
) -> None:
    with pytest.raises(InterfaceError, match=message):
        Kernel(QPU / "saxpy.qasm")(*values, **named)


def test_numbers_that_do_not_fit() -> None:
    kernel = Kernel(program("mov vpm, unif", "kernel f(n: int, x: byte[], out z: int[16])"))
    with pytest.raises(InterfaceError, match="n: 4294967296 has more than 32 bits"):
        kernel(1 << 32, [1])
    with pytest.raises(InterfaceError, match=r"n: float is no int"):
        kernel(1.5, [1])
    with pytest.raises(InterfaceError, match="x: a number does not fit byte"):
        kernel(1, [256])
    with pytest.raises(ValueError, match="qpus"):
        kernel(1, [1], qpus=13)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("kernel f(x", "is not closed"),
        ("kernel f(x: float)\nuniforms y", "'y' names y"),
        ("kernel f(x: floats)", "there is no type floats"),
        ("kernel f(x: byte)", "a number is float, int, uint"),
        ("kernel f(out x: float)", "only comes in"),
        ("kernel f(out x: float[])", "its size is needed"),
        ("kernel f(x: float[] = 3)", "an array has no default"),
        ("kernel f(x)", "expected"),
        ("kernel f(x: int, x: int)", "x cannot be the name"),
        ("kernel f(qpu: int)", "qpu cannot be the name"),
        ("kernel f(x: int)\nuniforms x +", "is no expression"),
        ("nothing", "has no line"),
    ],
)
def test_interfaces_that_cannot_be_understood(lines: str, message: str) -> None:
    with pytest.raises(InterfaceError, match=message):
        Kernel(program("mov vpm, unif", ""), interface=lines)


def test_an_interface_over_several_lines() -> None:
    interface = parse("nop # x\n// kernel f(a: int,\n//   b: float = 1.5)\n# uniforms a,\n#  b\n# c\n")
    assert str(interface) == "f(a: int, b: float = 1.5)"
    assert interface is not None
    assert interface.uniforms == ("a", "b")


def test_a_source_with_mistakes() -> None:
    with pytest.raises(AssemblyError, match="frobnicate"):
        Kernel("# kernel f(a: int)\nfrobnicate r0\n")
    with pytest.raises(OSError, match="none"):
        Kernel("none.qasm")


@given(st.text(max_size=200))
@example("]")
def test_hostile_interfaces(text: str) -> None:
    for source in (f"# kernel f({text}", f"# kernel f({text})\n# uniforms {text}", text):
        try:
            parse(source)
        except InterfaceError:
            continue


@pytest.mark.parametrize(
    "text", ["9**9**9", "__import__('os')", "a.b", "[1]", "1/0", "2*9**99", "(" * 500, "'x'*9", "1<<99"]
)
def test_hostile_expressions(text: str) -> None:
    with pytest.raises(InterfaceError):
        value_of(text, {"a": 1}, {})


def test_products_do_not_grow_without_bound() -> None:
    with pytest.raises(InterfaceError, match="too large"):
        value_of("*".join(["9999999999"] * 400), {}, {})


def test_a_call_is_stepped() -> None:
    saxpy = Kernel(QPU / "saxpy.qasm")
    x = np.arange(32, dtype=np.float32)
    session = saxpy.debug(x, x, a=3.0, qpus=2)
    place = session.place()
    assert place is not None
    assert place.text == "mov ra0, unif"
    session.step(3)
    assert session.evaluate("ra2.f[0]") == 3.0
    session.proceed()
    area = session.experiment.areas["y"]
    np.testing.assert_array_equal(session.memory.array(area.address, 32, "f4"), 4 * x)
    with pytest.raises(InterfaceError):
        saxpy.debug(x)
