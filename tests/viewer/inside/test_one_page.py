"""A frame as one page that opens from disk."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import pytest
from tests.viewer.inside.conftest import CUBE, SMALL

from vc4lab.debug.frame.places import NoSuchPlace
from vc4lab.viewer.inside.one_page import one_page, sampled
from vc4lab.viewer.inside.questions import ask


def answers_of(text):
    found = re.search(r'<script id="answers" type="application/json">(.*?)</script>', text, re.DOTALL)
    return json.loads(found[1])


@pytest.fixture(scope="module")
def page(session_of):
    return one_page(session_of(SMALL), 2, draw=2, pixel=(32, 24), grid=(3, 2))


def test_it_loads_nothing_and_its_script_is_the_one_that_may_run(page):
    assert "<!-- " not in page
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    assert "http:" not in page.replace("http://www.w3.org/2000/svg", "")
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page


def test_its_answers_are_those_of_the_server(page, session_of):
    data = answers_of(page)
    assert data["link"] == "#f2/d2/p32,24"
    assert data["draws"] == [0, 1, 2, 3]
    assert [1, 32, 24] in data["pixels"]
    assert len(data["pixels"]) == 7
    same = json.loads(ask(session_of(SMALL), "pixel", {"frame": "2", "job": "1", "x": "32", "y": "24"}).data)
    assert data["answers"]["pixel?frame=2&job=1&x=32&y=24"] == same
    picture = data["answers"]["picture?draw=2&frame=2"]
    assert base64.b64decode(picture) == ask(session_of(SMALL), "picture", {"frame": "2", "draw": "2"}).data
    for place in range(len(same["touches"])):
        assert f"run?frame=2&job=1&touch={place}&x=32&y=24" in data["answers"]
    for one in data["answers"].values():
        assert not (isinstance(one, dict) and "same" in one) or one["same"] in data["answers"]


def test_what_has_no_room_is_left_out_and_told(session_of, page):
    small = one_page(session_of(SMALL), 2, grid=(3, 2), most=30_000)
    assert len(answers_of(small)["answers"]) < len(answers_of(page)["answers"])
    assert "had none" in " ".join(answers_of(small)["notes"])
    with pytest.raises(NoSuchPlace, match="cannot be drawn"):
        one_page(session_of(SMALL), 2, most=100)


def test_nothing_in_an_answer_ends_the_script(session_of, page):
    data = page[page.index('type="application/json">') :]
    assert "<" not in data[: data.index("</script>")].split(">", 1)[1]
    with pytest.raises(NoSuchPlace):
        one_page(session_of(CUBE), 99)


@pytest.mark.parametrize(
    ("count", "most", "expected"),
    [(3, 9, [0, 1, 2, 3]), (100, 5, [0, 25, 50, 75, 100]), (100, 3, [0, 7, 50, 100])],
)
def test_some_draws_are_the_first_the_last_and_the_one_that_is_asked_for(count, most, expected):
    assert sampled(count, most, 7 if most == 3 else 0) == expected
