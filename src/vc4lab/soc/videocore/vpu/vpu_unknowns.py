"""Undocumented behaviour: public descriptions of the VPU's scalar instructions disagree or are silent."""

from __future__ import annotations

from vc4lab.diagnostics.unknown import Unknown

_ASK = "Execute it on a board by execute code (0x30010) and return the result in r0."
_GCC = "itszor's GCC for the VPU"
_GHIDRA = "poizan42's description for Ghidra"
_MODEL = "a public model of the VPU that boots a board's firmware"

VPU_UNKNOWNS = [
    Unknown(
        "vpu_signext",
        "Does the VPU's signext name the sign bit or the number of bits?",
        {"bit": "the sign bit: signext r0, 7 extends a byte", "width": "signext r0, 8 does"},
        "bit",
        _ASK,
        f"{_GCC} and {_MODEL}: the bit; {_GHIDRA}: the width",
    ),
    Unknown(
        "vpu_msb",
        "What does the VPU's msb give?",
        {
            "index": "the number of the highest bit that is set, -1 for 0",
            "leading_zeros": "how many zeros are above it, 32 for 0",
        },
        "index",
        _ASK,
        f"{_GCC} computes leading zeros as 31 - msb; {_GHIDRA} and mgottschlag's resim count zeros",
    ),
    Unknown(
        "vpu_brev",
        "What does the VPU's brev do with its operands?",
        {
            "operand": "it reverses all 32 bits of the right operand",
            "shifted": "with three operands it reverses the left one and shifts it to the right "
            "by the right one",
        },
        "operand",
        _ASK,
        f"{_GHIDRA} and itszor's binutils: one operand; {_MODEL}: shifted",
    ),
    Unknown(
        "vpu_saturation",
        "What does the s of the VPU's scalar adds and subs stand for?",
        {"saturate": "the result saturates", "flags": "the flags are set as by cmn and cmp"},
        "saturate",
        _ASK,
        f"{_GCC}: saturating, as the vector instructions of that name; {_MODEL}: flags",
    ),
    Unknown(
        "vpu_btest_carry",
        "What does the VPU's btest do to the carry flag?",
        {"zero": "it becomes what the zero flag becomes", "kept": "nothing"},
        "zero",
        _ASK,
        f"{_GHIDRA}: as Z; {_MODEL}: kept",
    ),
    Unknown(
        "vpu_float_immediate",
        "What is the 6-bit immediate of the VPU's floating-point instructions?",
        {
            "small": "sign, three bits of exponent (bias 3), two of fraction; exponent 0 is 0.0",
            "integer": "a signed integer",
        },
        "small",
        _ASK,
        f"pascalwerz's plugin for Hopper and {_MODEL}: a small float; {_GHIDRA}: an integer",
    ),
    Unknown(
        "vpu_float_flags",
        "Do the VPU's floating-point operations set flags, apart from fcmp?",
        {"kept": "no", "result": "Z and N follow the result, C and V are cleared"},
        "kept",
        _ASK,
        "VideoCore IV Programmers Manual (hermanhermitage's wiki): only cmp, cmn, btest and fcmp "
        f"set flags; {_MODEL} sets them",
    ),
    Unknown(
        "vpu_float_condition",
        "Do the VPU's floating-point operations obey the condition that they encode?",
        {"obeyed": "yes", "ignored": "they are always done"},
        "obeyed",
        _ASK,
        f"{_GHIDRA} and {_MODEL}: yes; a remark in {_GCC}: apparently not",
    ),
    Unknown(
        "vpu_float_to_int",
        "What do the VPU's ftrunc and floor give for a number beyond 32 bits?",
        {"saturate": "the largest or the smallest integer", "wrap": "its low 32 bits"},
        "saturate",
        _ASK,
        "No source says it",
    ),
    Unknown(
        "vpu_divide_by_zero",
        "What does the VPU do when it divides by zero?",
        {"exception": "an exception: the function is ended", "zero": "the quotient is 0"},
        "exception",
        _ASK,
        "The toolchain of itszor has a test program for the exception, and mgottschlag's resim "
        f"stops; {_MODEL}: 0",
    ),
    Unknown(
        "vpu_misaligned",
        "What does the VPU do with a load or store that is not aligned to its size?",
        {"exception": "an exception: the function is ended", "works": "it is done"},
        "exception",
        _ASK,
        f"{_GCC} requires alignment; {_MODEL} does the access",
    ),
]
