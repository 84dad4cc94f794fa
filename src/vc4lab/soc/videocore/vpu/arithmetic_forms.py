"""The instructions that compute, with integers and floating-point numbers."""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.diagnostics.unknown import Unknowns
from vc4lab.soc.videocore.vpu.core import Core, Flags, added, compared
from vc4lab.soc.videocore.vpu.floats import FCMP, FUNCTIONS, convert, pattern_of, small_float, value_of
from vc4lab.soc.videocore.vpu.memory import Fault, VpuMemory
from vc4lab.soc.videocore.vpu.operations import (
    BREV,
    BTEST,
    CMN,
    CMP,
    OPERATIONS,
    SIGN,
    WORD,
    DivisionByZero,
    signed,
)


class ArithmeticForms(Core):
    """A handler for each kind of form, named after it; what they do where sources disagree."""

    def __init__(
        self, memory: VpuMemory, unknowns: Unknowns, pass_time: Callable[[int], None] = lambda count: None
    ) -> None:
        super().__init__(memory, pass_time)
        saturation = unknowns["vpu_saturation"]
        choices = {
            "signext": unknowns["vpu_signext"],
            "msb": unknowns["vpu_msb"],
            "brev": unknowns["vpu_brev"],
            "adds": saturation,
            "subs": saturation,
        }
        self._compute = [operation.chosen(choices) for operation in OPERATIONS]
        self._brev_shifts = choices["brev"] == "shifted"
        self._saturates = saturation == "saturate"
        self._carry_of_btest = unknowns["vpu_btest_carry"] == "zero"
        self._small_floats = unknowns["vpu_float_immediate"] == "small"
        self._float_flags = unknowns["vpu_float_flags"] == "result"
        self._float_conditions = unknowns["vpu_float_condition"] == "obeyed"
        self._to_int_saturates = unknowns["vpu_float_to_int"] == "saturate"
        self._zero_divides = unknowns["vpu_divide_by_zero"] == "zero"

    # -- arithmetic --------------------------------------------------------------------------------

    def _operate(self, number: int, target: int, a: int, b: int) -> None:
        operation = OPERATIONS[number]
        if operation.compares:
            self._compare(number, a, b)
            return
        try:
            result = self._compute[number](a, b) & WORD
        except DivisionByZero:
            if not self._zero_divides:
                raise Fault("a division by zero") from None
            result = 0
        self.state.registers[target] = result
        if operation.like >= 0 and not self._saturates:
            self._compare(operation.like, a, b)

    def _compare(self, number: int, a: int, b: int) -> None:
        flags = self.state.flags
        if number == BTEST:
            flags.z, flags.n, flags.v = not self._compute[BTEST](a, b), False, False
            if self._carry_of_btest:
                flags.c = flags.z
        elif number == CMN:
            self.state.flags = added(a, b)
        elif number == CMP:
            self.state.flags = compared(a, b)

    def _two(self, number: int, f: dict[str, int], right: int) -> None:
        """A form whose left operand is its destination."""
        left = self.state.registers[f["d"]]
        if number == BREV and self._brev_shifts:
            left, right = right, 0
        self._operate(number, f["d"], left, right)

    def _do_alu_register(self, f: dict[str, int]) -> None:
        self._two(f["p"], f, self.state.registers[f["b"]])

    def _do_alu_small(self, f: dict[str, int]) -> None:
        self._two(2 * f["q"], f, f["u"])

    def _do_alu_number(self, f: dict[str, int]) -> None:
        self._two(f["p"], f, f["i"] & WORD)

    def _do_alu_word(self, f: dict[str, int]) -> None:
        self._two(f["p"], f, f["u"])

    def _do_alu_three(self, f: dict[str, int]) -> None:
        if self._holds(f):
            registers = self.state.registers
            right = registers[f["b"]] if "b" in f else f["i"] & WORD
            self._operate(f["p"], f["d"], registers[f["a"]], right)

    def _do_add_number(self, f: dict[str, int]) -> None:
        self.state.registers[f["d"]] = self.state.registers[f["b"]] + f["i"] & WORD

    def _do_add_word(self, f: dict[str, int]) -> None:
        self.state.registers[f["d"]] = self.state.registers[f["b"]] + f["u"] & WORD

    # -- floating point ----------------------------------------------------------------------------

    def _float_done(self, f: dict[str, int]) -> bool:
        return self._holds(f) or not self._float_conditions

    def _do_float(self, f: dict[str, int]) -> None:
        if not self._float_done(f):
            return
        registers = self.state.registers
        a = value_of(registers[f["a"]])
        if "b" in f:
            b = value_of(registers[f["b"]])
        else:
            b = small_float(f["i"] & 63) if self._small_floats else float(f["i"])
        if f["f"] == FCMP:
            self.state.flags = Flags(z=a == b, n=a < b, c=a < b)
            return
        result = registers[f["d"]] = pattern_of(FUNCTIONS[f["f"]](a, b))
        if self._float_flags:
            zero = not result & SIGN - 1
            self.state.flags = Flags(z=zero, n=bool(result & SIGN) and not zero)

    def _do_convert(self, f: dict[str, int]) -> None:
        if self._float_done(f):
            registers = self.state.registers
            shift = signed(registers[f["b"]]) if "b" in f else f["i"]
            word = registers[f["a"]]
            registers[f["d"]] = convert(f["f"], word, shift, self._to_int_saturates)
