"""`vc4lab explain WORDS`: what is seen leads to the entries that are likely."""

import re

import pytest
import typer
from typer.testing import CliRunner

from vc4lab.cli.explain import explain
from vc4lab.diagnostics import catalogue
from vc4lab.diagnostics.catalogue.symptoms import SYMPTOMS
from vc4lab.diagnostics.entry import Entry
from vc4lab.diagnostics.search import search

RUNNER = CliRunner()
APP = typer.Typer()
APP.command()(explain)


def codes(question: str) -> list[str]:
    """Of the causes, then of the entries with the words."""
    answer = search(question)
    return [cause.code for cause in (*answer.causes, *answer.entries) if isinstance(cause, Entry)]


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("black screen", "SOC-030"),
        ("my triangle is not drawn", "CLE-047"),
        ("black screen", "DRAW-006"),
        ("no picture", "SOC-142"),
        ("my triangle is black", "VTX-010"),
        ("picture in the top left corner", "DRAW-014"),
        ("the triangle is very small", "DRAW-013"),
        ("Why is the screen BLACK?", "SOC-040"),
        ("wrong colors", "SOC-084"),
        ("red and blue are swapped", "SOC-084"),
        ("picture flickers", "CLE-042"),
        ("slanted picture", "SOC-083"),
        ("it hangs", "SOC-040"),
        ("results are all zeros", "QPU-066"),
        ("too slow", "PERF-002"),
        ("undefined instruction", "SOC-042"),
        ("works in QEMU but not on the board", "SOC-110"),
        ("no serial output", "SOC-058"),
        ("semaphore never incremented", "CLE-022"),
        ("tile allocation memory", "CLE-027"),
        ("two writers of a cache line", "CACHE-005"),
    ],
)
def test_a_question_leads_to_the_entry(question: str, code: str) -> None:
    assert code in codes(question)


def test_what_no_message_can_notice_is_a_sentence() -> None:
    assert any("Y grows downwards" in str(cause) for cause in search("upside down").causes)


def test_an_entry_is_named_once() -> None:
    for symptom in SYMPTOMS:
        found = codes(symptom.names[0])
        assert len(found) == len(set(found))


def test_each_code_of_a_symptom_is_in_the_catalogue() -> None:
    for symptom in SYMPTOMS:
        for cause in symptom.causes:
            assert cause in catalogue() or (" " in cause and cause.endswith(".")), cause


def test_each_name_finds_its_symptom() -> None:
    for symptom in SYMPTOMS:
        for name in symptom.names:
            assert search(name).causes == search(symptom.names[0]).causes, name


def test_words_on_the_command_line() -> None:
    result = RUNNER.invoke(APP, ["upside", "down"])
    assert result.exit_code == 0
    assert result.output.startswith("upside down: look for these")
    assert "vc4lab explain CODE has the whole entry" in result.output
    result = RUNNER.invoke(APP, ["xyzzy"])
    assert result.exit_code == 2
    assert "No diagnostic fits 'xyzzy'" in result.output + result.stderr


def test_several_codes() -> None:
    output = RUNNER.invoke(APP, ["cle-001", "SOC-040"]).output
    assert re.findall(r"^(\w+-\d+)  ", output, re.M) == ["CLE-001", "SOC-040"]


def test_hostile_questions() -> None:
    for question in ("", " ", "a" * 100_000, "\x00\x1b[31m", "the of and", "(((", "é" * 50):
        search(question)
