"""`vc4lab run` watches a program: both engines notice the same, and nothing else changes."""

import random
from collections.abc import Sequence

import pytest
from tests.support.compute import END, ENGINES
from tests.v3d.user_programs.test_programs import is_graphics, mutated

from vc4lab.diagnostics import Reporter, StrictStop
from vc4lab.diagnostics.catalogue import catalogue
from vc4lab.qpu.text.assembler import assemble
from vc4lab.v3d.user_programs.experiment import AREAS, CODE, Experiment
from vc4lab.v3d.user_programs.watching import watch

STORE = "ldi vw_setup, 0x80904000\n"  # one row of 16 words from row 0
ROWS = "ldi vw_setup, 0x1a00\n"
LOAD = f"ldi vr_setup, {1 << 31 | 1 << 16}\n"
READ = f"ldi vr_setup, {0x1A00 | 1 << 20}\n"


def watched(
    engine: str,
    text: str,
    uniforms: str = "",
    areas: Sequence[str] = (),
    *,
    strict: bool = False,
    qpus: int = 1,
    check: bool = True,
) -> tuple[Reporter, Experiment]:
    reporter = Reporter(strict)
    experiment = Experiment(assemble(text).bytes, engine=engine, reporter=reporter, check=check, threads=1)
    for area in areas:
        experiment.add_area(area)
    experiment.run(qpus, [uniforms])
    return reporter, experiment


def noticed(
    text: str, uniforms: str = "", areas: Sequence[str] = (), qpus: int = 1
) -> list[tuple[str, int, str]]:
    """(code, instruction, message) of errors; both engines say the same."""
    found = []
    for engine in ENGINES:
        reporter, _ = watched(engine, text, uniforms, areas, qpus=qpus)
        found.append(
            [
                (item.code, ((item.address or 0) - CODE) // 8, item.message)
                for item in reporter.items
                if item.code >= "QPU-061" and item.code <= "QPU-066"
            ]
        )
    assert found[0] == found[1]
    return found[0]


def codes(*arguments: object, **options: int) -> list[tuple[str, int]]:
    return [(code, site) for code, site, _ in noticed(*arguments, **options)]  # type: ignore[arg-type]


def test_a_right_program_is_silent() -> None:
    text = LOAD + "mov vr_addr, unif\nmov -, vr_wait\n" + READ + "mov r0, vpm\n" + ROWS
    text += "add vpm, r0, 1\n" + STORE + "mov vw_addr, unif\nmov -, vw_wait" + END
    assert noticed(text, "a, b", ["a=64", "b=64"], qpus=3) == []
    for engine in ENGINES:
        reporter, _ = watched(engine, text, "a, b", ["a=64", "b=64"])
        assert reporter.items == []


def test_uniforms_past_their_list() -> None:
    found = noticed("mov r0, unif\nmov r1, unif\nmov r2, unif" + END, "5")
    assert [(code, site) for code, site, _ in found] == [("QPU-062", 1), ("QPU-062", 2)]
    assert "uniform 2 is read, but 1 was given" in found[0][2]
    assert "uniform 1 is read, but none were given" in noticed("mov r0, unif" + END)[0][2]
    moved = "mov unif_addr, unif\nnop\nnop\nmov r0, unif\nmov r0, unif" + END
    found = noticed(moved, "a + 4", ["a=8"])
    assert [(code, site) for code, site, _ in found] == [("QPU-062", 4)]
    assert "past the end of 'a'" in found[0][2]


def test_texture_parameters_are_uniforms() -> None:
    text = "mov t0t, 0\nmov t0s, 0\nnop; nop; ldtmu0" + END
    assert codes(text, "a", ["a=4096"]) == [("QPU-062", 1)]
    assert codes(text, "a, 0", ["a=4096"]) == []
    assert ("QPU-064", 1) in codes(text, "0x100, 0", ["a=4096"])


@pytest.mark.parametrize(
    ("address", "size", "message"),
    [("a", 64, ""), ("a", 60, "4 bytes past the end of 'a'"), ("a + 64", 64, "64 bytes past")],
)
def test_dma_store_outside(address: str, size: int, message: str) -> None:
    text = ROWS + "mov vpm, 1\n" + STORE + "mov vw_addr, unif\nmov -, vw_wait" + END
    found = noticed(text, address, [f"a={size}"])
    assert [(code, site) for code, site, _ in found] == ([("QPU-063", 3)] if message else [])
    assert not message or message in found[0][2]


def test_rows_of_a_store() -> None:
    """The gap between rows counts, and rows may lie in several memories."""
    rows = 2 << 30 | 2 << 23 | 16 << 16 | 1 << 14  # two rows of 16 words
    text = f"ldi vw_setup, {rows}\nldi vw_setup, {3 << 30 | 4096 - 64}\n"
    text += "mov vw_addr, unif\nmov -, vw_wait" + END
    assert codes(text, "a", ["a=64", "b=64"]) == []
    assert codes(text, "b", ["a=64", "b=64"]) == [("QPU-063", 2)]
    assert codes(text, "a + 16", ["a=80", "b=76"]) == [("QPU-063", 2)]


def test_dma_load_outside() -> None:
    text = LOAD + "mov vr_addr, unif\nmov -, vr_wait" + END
    assert codes(text, "a", ["a=64"]) == []
    assert codes(text, "a + 4", ["a=64"]) == [("QPU-063", 1)]
    assert "outside the named memory" in noticed(text, "0")[0][2]
    pitched = f"ldi vr_setup, {1 << 31 | 2 << 16 | 9 << 24}\n"  # two rows, 4096 bytes apart
    text = pitched + "mov vr_addr, unif\nmov -, vr_wait" + END
    assert codes(text, "a", ["a=64", "b=64"]) == []
    assert codes(text, "a", ["a=64", "b=32"]) == [("QPU-063", 1)]


def test_lookups_outside() -> None:
    text = "shl r0, elem_num, 2\nadd t0s, r0, unif\nnop; nop; ldtmu0" + END
    assert codes(text, "a", ["a=64"]) == []
    assert codes(text, "a", ["a=32", "b=4096"]) == [("QPU-064", 1)]
    found = noticed(text, "a", ["a=32"])[0][2]
    assert "lane 8 looks up a word at" in found
    assert "4 bytes past the end of 'a'" in found
    assert codes(text, "a + 0xc0000000", ["a=64"]) == []
    some = text.replace("add t0s", "mov.setf -, 0\nadd.zc t0s")
    assert codes(some, "a", ["a=4"]) == [("QPU-061", 2)]  # QPU-114


def test_vpm_read_before_the_load_was_waited_for() -> None:
    start = LOAD + "mov vr_addr, unif\n" + READ
    assert codes(start + "mov r0, vpm\nmov -, vr_wait" + END, "a", ["a=64"]) == [("QPU-065", 3)]
    assert codes(start + "mov -, vr_wait\nmov r0, vpm" + END, "a", ["a=64"]) == []
    assert codes(start + "mov -, vr_busy\nmov r0, vpm" + END, "a", ["a=64"]) == []
    elsewhere = start.replace(READ, f"ldi vr_setup, {0x1A00 | 1 << 20 | 1}\n")
    assert codes(elsewhere + "mov r0, vpm" + END, "a", ["a=64"]) == []
    column = start.replace(READ, f"ldi vr_setup, {0x1200 | 1 << 20}\n")
    assert codes(column + "mov r0, vpm" + END, "a", ["a=64"]) == [("QPU-065", 3)]


def test_every_vector_of_loads_that_were_not_waited_for() -> None:
    """Rows 0 and 1 are loaded, rows 0 to 2 are read."""
    row_1 = f"ldi vr_setup, {1 << 31 | 1 << 16 | 1 << 4}\nmov vr_addr, r2\n"
    loads = LOAD + "mov r2, unif\nmov vr_addr, r2\n" + row_1
    reads = f"ldi vr_setup, {0x1A00 | 3 << 20}\nmov r0, vpm\nmov r1, vpm\nmov r3, vpm\n"
    found = codes(loads + reads + "mov -, vr_wait" + END, "a", ["a=64"])
    assert found == [("QPU-065", 6), ("QPU-065", 7)]
    assert codes(loads + "mov -, vr_wait\n" + reads + END, "a", ["a=64"]) == []


def test_end_before_the_store_was_waited_for() -> None:
    text = STORE + "mov vw_addr, unif\n"
    assert codes(text + END, "a", ["a=64"]) == [("QPU-066", 1)]
    assert codes(text + "mov -, vw_wait" + END, "a", ["a=64"]) == []


def test_broken_restrictions_are_noticed_where_execution_comes() -> None:
    assert codes("mov ra1, 5\nmov r0, ra1" + END) == [("QPU-061", 1)]
    assert codes("mov recip, 1.0\nmov r0, r4" + END) == [("QPU-061", 1)]
    around = "brr end\nnop\nnop\nnop\nmov ra1, 5\nmov r0, ra1\nend: nop" + END
    assert codes(around) == []
    late = "nop; nop; thrend\nmov ra14, 1\nnop"
    assert codes(late) == [("QPU-061", 1)]
    assert "see QPU-105" in noticed(late)[0][2]


def test_along_a_branch() -> None:
    loop = "mov ra2, unif\nnop\nmov r3, ra2\nl: mov r0, ra1\nsub.setf r3, r3, 1\nbrr.anynz l\nnop\n"
    loop += "nop\nmov ra1, r3" + END
    assert codes(loop, "1") == []
    assert codes(loop, "2") == [("QPU-061", 3)]


def test_along_a_register_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lint does not know where it goes; the watch sees it, up to a number of branches."""
    text = "mov.setf r1, 1\nbrr.allz l\nnop\nnop\nnop\nldi ra5, l\nnop\nldi ra6, 0x1000\nnop\n"
    text += "mov r0, ra6\nadd ra5, ra5, r0\nnop\n"
    text += "bra -, ra5\nnop\nnop\nmov ra1, 7\nnop; nop; thrend\nnop\nnop\nl: mov r0, ra1" + END
    for engine in ENGINES:
        reporter, _ = watched(engine, text)
        assert [item.code for item in reporter.items if item.code < "QPU-057"] == []
    assert codes(text) == [("QPU-061", 19)]
    monkeypatch.setattr(watch, "MAX_COMPARED", 10)
    assert codes(text.replace("mov ra1, 7", "mov ra1, 8")) == []


def test_every_repetition_is_one_message() -> None:
    text = "ldi r3, 1000\nl: mov t0s, 0\nnop; nop; ldtmu0\nmov ra1, 5\nmov r0, ra1\n"
    text += "sub.setf r3, r3, 1\nbrr.anynz l\nnop\nnop\nnop" + END
    assert codes(text) == [("QPU-064", 1), ("QPU-061", 4)]


def test_twelve_qpus_each_have_their_own() -> None:
    found = noticed("mov r0, unif\nmov r0, unif" + END, "1", qpus=12)
    assert [message.split(" `")[0] for _, _, message in found] == [f"QPU {n}" for n in range(12)]


@pytest.mark.parametrize("engine", ENGINES)
def test_strict_stops_there(engine: str) -> None:
    text = "mov r0, unif\n" + ROWS + "mov vpm, 5\n" + STORE + "mov vw_addr, unif\nmov -, vw_wait"
    area = ["a=64"]
    with pytest.raises(StrictStop, match="uniform 1 is read"):
        watched(engine, text + END, "", area, strict=True)
    reporter, experiment = watched(engine, text + END, "0, a", area, strict=True)
    assert reporter.items == []
    assert experiment.memory.u32(AREAS) == 5


@pytest.mark.parametrize("engine", ENGINES)
def test_strict_stops_before_a_store_outside(engine: str) -> None:
    text = ROWS + "mov vpm, 5\n" + STORE + "mov vw_addr, unif\nmov -, vw_wait" + END
    experiment = Experiment(assemble(text).bytes, engine=engine, reporter=Reporter(strict=True))
    experiment.add_area("a=64")
    with pytest.raises(StrictStop, match="QPU-063"):
        experiment.run(1, ["a + 64"])
    assert experiment.memory.u32(AREAS + 64) == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_watching_changes_nothing(engine: str) -> None:
    text = "mov r3, unif\nl: mov ra1, r3\nmov r0, ra1\nsub.setf r3, r3, 1\nbrr.anynz l\nnop\n"
    text += "add r1, r0, r1\nnop\n" + ROWS + "mov vpm, r1\n" + STORE + "mov vw_addr, unif" + END
    results = []
    for check in (True, False):
        reporter, experiment = watched(engine, text, "100, a", ["a=64"], check=check)
        results.append((experiment.memory.read(AREAS, 64), experiment.programs.instructions))
        assert bool(reporter.items) == check
    assert results[0] == results[1]


def test_random_programs_are_watched_alike() -> None:
    for seed in range(12):
        words = [word for word in mutated(random.Random(seed)) if not is_graphics(word)]
        words += assemble(END).words
        seen = []
        for engine in ENGINES:
            reporter = Reporter()
            code = b"".join(word.to_bytes(8, "little") for word in words)
            experiment = Experiment(code, engine=engine, reporter=reporter, budget=2000)
            experiment.add_area("a=4096")
            experiment.run(1, ["a, a, 1"])
            notes = (item for item in reporter.items if "QPU-061" <= item.code <= "QPU-066")
            seen.append(sorted((item.code, item.address, item.message) for item in notes))
        assert seen[0] == seen[1], seed


def test_messages_are_in_the_catalogue() -> None:
    assert {f"QPU-06{n}" for n in range(1, 7)} <= catalogue().keys()


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_rows_of_the_vpm_that_nothing_has_filled(engine: str) -> None:
    """With --strict they hold noise, as RAM does: what a program stores of them shows."""
    store = "ldi vw_setup, 0x1a00\nmov vpm, 5\nldi vw_setup, 0x81104000\nmov vw_addr, unif\nmov -, vw_wait"
    found = []
    for strict in (False, True):
        _, experiment = watched(engine, store + END, "a", ["a=128"], strict=strict)
        area = experiment.areas["a"]
        data = experiment.memory.read(area.address, 128)
        assert data[:64] == b"\5\0\0\0" * 16
        found.append(data[64:])
    assert found[0] == bytes(64)
    assert len(set(found[1])) > 20


@pytest.mark.parametrize(
    ("taken", "left"),
    [("", "2 results of TMU0"), ("nop; nop; ldtmu0\n", "a result of TMU0"), ("nop; nop; ldtmu0\n" * 2, "")],
)
@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_texture_results_that_are_left(engine: str, taken: str, left: str) -> None:
    """Also where nothing else is watched, as on a board."""
    text = "mov r0, unif\nmov t0s, r0\nmov t0s, r0\n" + taken + END
    for check in (True, False):
        reporter, _ = watched(engine, text, "a", ["a=64"], check=check)
        found = [item.message for item in reporter.items if item.code == "QPU-067"]
        assert len(found) == bool(left)
        assert not left or left in found[0]
