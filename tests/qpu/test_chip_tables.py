"""Every value that real chips answered, from the interpreter and from the JIT."""

import csv
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.qpu_runner import Outcome, Runner

from vc4lab.qpu.isa.encoding import NOP, AddOp, Alu, MulOp, Pack
from vc4lab.simd import Target, targets

DATA = Path(__file__).parents[1] / "data" / "chip"
END = [NOP.replace(signal=3).encode(), NOP.value, NOP.value]
ENGINES = ["interpreter", "exact", "jit"]
PACKS = {
    "result": Pack.NONE,
    "result32BitSaturated": Pack.SAT32,
    "result16BitASaturated": Pack.SAT16A,
    "result16BitATruncated": Pack.H16A,
    "result16BitBSaturated": Pack.SAT16B,
    "result16BitBTruncated": Pack.H16B,
    "result8BitASaturated": Pack.SAT8A,
    "result8BitATruncated": Pack.B8A,
    "result8BitBSaturated": Pack.SAT8B,
    "result8BitBTruncated": Pack.B8B,
    "result8BitCSaturated": Pack.SAT8C,
    "result8BitCTruncated": Pack.B8C,
    "result8BitDSaturated": Pack.SAT8D,
    "result8BitDTruncated": Pack.B8D,
    "result8BitRepSaturated": Pack.SAT8_ALL,
    "result8BitRepTruncated": Pack.B8_ALL,
}


@cache
def table(name: str) -> Any:
    with gzip.open(DATA / f"{name}.json.gz", "rt") as file:
        return json.load(file)


def operation(name: str) -> tuple[str, int]:
    if name in AddOp.__members__:
        return "add", AddOp[name]
    return "mul", MulOp[name]


def instruction(name: str, target: int, pack: int) -> int:
    """The operation on ra30 and rb30, written to ra<target> with a pack; sets flags."""
    alu, op = operation(name)
    fields: dict[str, Any] = {"raddr_a": 30, "raddr_b": 30, "pack": pack, "sf": 1}
    if alu == "add":
        fields |= {"op_add": op, "add_a": 6, "add_b": 7, "cond_add": 1, "waddr_add": target}
    else:
        fields |= {"op_mul": op, "mul_a": 6, "mul_b": 7, "cond_mul": 1, "waddr_mul": target}
        fields["ws"] = 1
    return Alu(NOP.value).replace(**fields).encode()


def program(name: str) -> list[int]:
    """Every pack of the operation, into ra0..ra15 by pack code."""
    return [instruction(name, pack, pack) for pack in range(16)] + END


def rows_of_16(rows: list[Any]) -> list[list[Any]]:
    padded = rows + [rows[-1]] * (-len(rows) % 16)
    return [padded[i : i + 16] for i in range(0, len(padded), 16)]


def outcomes(name: str, rows: list[Any], engine: str) -> list[tuple[list[Any], Outcome]]:
    runner = Runner(program(name), engine)
    result = []
    for group in rows_of_16(rows):
        first = np.array([row[0] for row in group], np.uint32)
        second = np.array([row[1] for row in group], np.uint32)
        result.append((group, runner.run({("a", 30): first, ("b", 30): second})))
    return result


NAMES = [name for name, rows in table("alu")["tables"].items() if rows]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", NAMES)
def test_results_flags_and_packs(name: str, engine: str) -> None:
    packs = table("pack")["fields"]
    packed = {(row[0], row[1]): row for row in table("pack")["tables"].get(name, [])}
    seen = 0
    for group, outcome in outcomes(name, table("alu")["tables"][name], engine):
        for lane, (first, second, result, saturated, flags) in enumerate(group):
            assert outcome.registers["a", 0][lane] == result, (first, second)
            assert outcome.registers["a", Pack.SAT32][lane] == saturated, (first, second)
            if operation(name)[0] == "add":
                got = "".join(f for f in "znc" if outcome.flags[f][lane])
                assert sorted(got) == sorted(flags), (first, second)
            row = packed.get((first, second))
            if row is None:
                continue
            for field, expected in zip(packs[2:], row[2:], strict=True):
                value = outcome.registers["a", PACKS[field]][lane]
                assert value == expected, (first, second, field)
                seen += 1
    if packed:
        assert seen >= 16 * len(packed)


def test_the_tables_are_whole() -> None:
    assert len(NAMES) >= 28
    assert set(PACKS) == set(table("pack")["fields"][2:])


UNPACKS = {
    "result": (0, False),
    "result16BitASignExtended": (1, False),
    "result16BitBSignExtended": (2, False),
    "result8BitReplicated": (3, False),
    "result8BitAZeroExtended": (4, False),
    "result8BitBZeroExtended": (5, False),
    "result8BitCZeroExtended": (6, False),
    "result8BitDZeroExtended": (7, False),
    "result16BitAFloatExtended": (1, True),
    "result16BitBFloatExtended": (2, True),
    "result8BitFloatReplicated": (3, True),
    "result8BitAFloatExtended": (4, True),
    "result8BitBFloatExtended": (5, True),
    "result8BitCFloatExtended": (6, True),
    "result8BitDFloatExtended": (7, True),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_unpacks(engine: str) -> None:
    words = []
    for number, (code, is_float) in enumerate(UNPACKS.values()):
        # fmin x, x is a float operation that passes raw bits
        op = AddOp.FMIN if is_float else AddOp.OR
        word = Alu(NOP.value).replace(
            op_add=op, cond_add=1, raddr_a=30, unpack=code, add_a=6, add_b=6, waddr_add=number
        )
        words.append(word.encode())
    data = table("unpack")
    runner = Runner(words + END, engine)
    assert set(UNPACKS) == set(data["fields"][1:])
    for group in rows_of_16(data["tables"]["UNPACK"]):
        arguments = np.array([row[0] for row in group], np.uint32)
        outcome = runner.run({("a", 30): arguments})
        for lane, row in enumerate(group):
            for field, expected in zip(data["fields"][1:], row[1:], strict=True):
                number = list(UNPACKS).index(field)
                assert outcome.registers["a", number][lane] == expected, (hex(row[0]), field)


SFU_REGISTERS = {"recip": 52, "rsqrt": 53}


def sfu_rows(function: str) -> list[tuple[int, int]]:
    """(input, output) as a Pi 2 printed them."""
    with (DATA / "sfu.csv").open() as file:
        return [
            (int(row["input_bits"], 16), int(row["output_bits"], 16))
            for row in csv.DictReader(file)
            if row["function"] == function
        ]


def sfu_program(function: str) -> list[int]:
    """ra0 = the function of ra30."""
    nop = Alu(NOP.value)
    write = nop.replace(
        op_add=AddOp.OR, cond_add=1, raddr_a=30, add_a=6, add_b=6, waddr_add=SFU_REGISTERS[function]
    )
    read = nop.replace(op_add=AddOp.OR, cond_add=1, add_a=4, add_b=4, waddr_add=0)
    return [write.encode(), NOP.value, NOP.value, read.encode(), *END]


@pytest.mark.parametrize("level", targets(), ids=lambda target: target.level)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("function", SFU_REGISTERS)
def test_the_sfu_of_a_pi_2(function: str, engine: str, level: Target) -> None:
    runner = Runner(sfu_program(function), engine, target=level)
    rows = sfu_rows(function)
    assert len(rows) >= 11
    for group in rows_of_16(rows):
        inputs = np.array([row[0] for row in group], np.uint32)
        outcome = runner.run({("a", 30): inputs})
        assert outcome.registers["a", 0].tolist() == [row[1] for row in group]
