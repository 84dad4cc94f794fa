"""The catalogue is complete, the reporter counts instead of flooding."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import vc4lab
from vc4lab.diagnostics import AREAS, Reporter, Severity, StrictStop, catalogue, explain

CODE = re.compile(rf"\b(?:{'|'.join(AREAS.values())})-\d{{3}}\b")
SOURCE = Path(vc4lab.__file__).parent


@pytest.mark.parametrize("code", sorted(catalogue()))
def test_entries_are_complete(code: str) -> None:
    entry = catalogue()[code]
    assert CODE.fullmatch(code)
    for text in (entry.title, entry.explanation, entry.reference, entry.cure):
        assert len(text.strip()) > 3
    assert not entry.title.endswith(".")
    assert code in explain(code.lower())


def test_codes_are_in_the_file_of_their_area() -> None:
    from importlib import import_module

    for area, prefix in AREAS.items():
        path = SOURCE / "diagnostics" / "catalogue" / f"{area}.py"
        if path.exists():
            module = import_module(f"vc4lab.diagnostics.catalogue.{area}")
            assert all(entry.code.startswith(f"{prefix}-") for entry in module.ENTRIES)


def test_every_code_used_is_explained_and_every_entry_used() -> None:
    used = {
        (code, path.parent.name == "catalogue")
        for path in SOURCE.rglob("*.py")
        for code in CODE.findall(path.read_text(encoding="utf-8"))
    }
    assert {code for code, _ in used} == {*catalogue()}
    assert {code for code, is_named_only in used if not is_named_only} == {*catalogue()}


def test_unknown_code_suggests() -> None:
    with pytest.raises(KeyError, match="Codes begin with QPU-"):
        explain("XYZ-1")
    with pytest.raises(KeyError, match="Did you mean CLE-"):
        explain("CLE-0010")


def test_what_fails_on_boards_is_an_error_in_strict_mode_only() -> None:
    entry = next(entry for entry in catalogue().values() if entry.fails_on_boards)
    assert entry.severity < Severity.ERROR
    assert "error with --strict" in explain(entry.code)
    lenient = Reporter()
    lenient.report(entry.code, "here")
    assert lenient.worst is entry.severity
    with pytest.raises(StrictStop) as stop:
        Reporter(strict=True).report(entry.code, "here")
    assert stop.value.diagnostic.severity is Severity.ERROR


def test_a_textures_configuration_is_one_cause_wherever_its_words_are() -> None:
    """Mesa writes new uniforms for each draw: a glmark2 in Linux gave hundreds of lines."""
    reporter = Reporter()
    heard = []
    reporter.listeners.append(heard.append)
    for address in range(0x2000, 0x2400, 16):
        reporter.report("TMU-006", "800x600 texture with 10 mip levels", address=address)
    reporter.report("TMU-006", "40x40 texture with 2 mip levels", address=0x2000)
    for address in (0x2000, 0x3000):
        reporter.report("TMU-012", "outside of memory", address=address)
    assert [item.address for item in heard] == [0x2000, 0x2000, 0x2000, 0x3000]
    assert reporter.counts["TMU-006"] == 65
    assert "TMU-006: 63 more like this" in reporter.summary()


def test_reporter_dedups_and_listens() -> None:
    reporter = Reporter()
    heard = []
    reporter.listeners.append(heard.append)
    for _ in range(5):
        reporter.report("CLE-001", "twice", address=0x40, block="CLE")
    for address in range(1000):
        reporter.report("CLE-001", "many", address=address)
    assert len(heard) == len(reporter.items) == 32
    assert reporter.counts["CLE-001"] == 1005
    assert reporter.worst is not None
    assert "CLE-001 [CLE] at 0x00000040: twice" in reporter.summary()
    assert "CLE-001: 973 more like this" in reporter.summary()
    reporter.clear()
    assert not reporter.has("CLE-001")


def test_strict_stops_at_errors_only() -> None:
    reporter = Reporter(strict=True)
    hint = next((c for c, e in catalogue().items() if e.severity < Severity.ERROR), None)
    if hint is not None:
        reporter.report(hint, "just a word")
    for _ in range(2):  # the same again is no less an error
        with pytest.raises(StrictStop, match="stop here"):
            reporter.report("CLE-001", "stop here", address=4)


def test_a_message_reads_the_entries_of_its_area_only() -> None:
    """A program that gets one message does not wait until the whole catalogue is read."""
    text = (
        "import sys; from vc4lab.diagnostics import Reporter; Reporter().report('SOC-140', 'black'); "
        "print(*(name for name in sys.modules if name.startswith('vc4lab.diagnostics.catalogue.')))"
    )
    result = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    read = {name.rpartition(".")[2] for name in result.stdout.split()}
    assert "soc" in read
    assert not read & {"qpu", "vertex", "boot", "drm", "cli"}
