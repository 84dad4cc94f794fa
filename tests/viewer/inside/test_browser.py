"""The pages in a real headless Chromium: every view, picking, the slider, stepping, editing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from tests.support.browser import Browser, chromium, lacking
from tests.viewer.inside.conftest import CUBE, SMALL

from vc4lab.viewer.inside.one_page import one_page
from vc4lab.viewer.inside.questions import Desk, ask
from vc4lab.viewer.inside.server import Server

pytestmark = pytest.mark.skipif(bool(lacking()), reason=lacking())
FRAME, DRAWS = 3, 6
CENTRE = (320, 240)
VIEWS = "pixel state lists shader mesh textures targets counters timing messages".split()  # noqa: SIM905
READY = "return document.body.dataset.ready === `${V.place.frame}/${V.place.draw}/${V.place.edition}/picture`"
SHOWN = """const body = document.getElementById('body');
return body.dataset.name === arguments[0] && !body.querySelector('.wait') && body.textContent"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def address(session_of) -> Iterator[str]:
    with Server(lambda: Desk(session_of(CUBE))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.url
        server.shutdown()
        thread.join()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Browser]:
    """The page as it is when it was opened; it must not complain."""
    browser.go("about:blank")
    browser.go(f"{address}#f{FRAME}")
    browser.wait("return typeof V === 'object' && V.frame && V.place.draw !== null")
    browser.wait(READY)
    yield browser
    assert browser.errors() == []


def pixel(page: Browser, x: int = CENTRE[0], y: int = CENTRE[1]) -> list[int]:
    """The colour that the page shows at a pixel of the picture."""
    script = """const canvas = document.createElement('canvas');
    const [x, y] = arguments;
    return V.ask('picture', {frame: V.place.frame, edition: V.place.edition, draw: V.place.draw})
      .then(V.pixels).then((image) => { [canvas.width, canvas.height] = [image.width, image.height];
        const context = canvas.getContext('2d'); context.drawImage(image, 0, 0);
        return [...context.getImageData(x, y, 1, 1).data.slice(0, 3)]; })"""
    return page.run(script, x, y)


def pick(page: Browser) -> None:
    """Click the middle of the picture."""
    box = page.run("const b = document.querySelector('canvas.picture').getBoundingClientRect();"
                   "return [b.x + b.width / 2, b.y + b.height / 2]")  # fmt: skip
    page.click(*box)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_opens_and_fits(page, theme):
    page.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
    paper = page.run("return getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (theme == "light")
    for name in VIEWS:
        page.run("V.go({view: arguments[0]})", name)
        text = page.wait(SHOWN, name)
        assert "only a part" not in text
        assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    assert page.run("return Object.keys(V.views)") == VIEWS


def test_a_click_asks_the_pixel(page):
    pick(page)
    cards = page.wait(
        "return [...document.querySelectorAll('.touch .outcome')].map((one) => one.textContent)"
    )
    assert cards
    x, y = page.run("return [V.place.x, V.place.y]")
    assert abs(x - CENTRE[0]) <= 1
    assert abs(y - CENTRE[1]) <= 1
    assert page.run("return location.hash") == f"#f{FRAME}/j1/d{DRAWS}/p{x},{y}"
    shown = page.run("return document.querySelector('#body h2 code').textContent")
    assert shown == "#" + "".join(f"{one:02x}" for one in pixel(page, x, y)) + "ff"


def test_arrows_and_the_slider_go_through_the_draws(page):
    assert page.run("return document.getElementById('slider').value") == str(DRAWS)
    last = pixel(page)
    for _ in range(DRAWS):
        page.keys("\ue012")
    page.wait(READY)
    assert page.run("return [location.hash, V.place.draw]") == [f"#f{FRAME}/d0", 0]
    assert pixel(page) != last
    page.run("const one = document.getElementById('slider'); one.value = arguments[0];"
             "one.dispatchEvent(new Event('input'))", DRAWS)  # fmt: skip
    page.wait(READY)
    assert pixel(page) == last
    assert f"draw {DRAWS} of {DRAWS}" in page.run("return document.getElementById('stage').textContent")


def test_overlays_take_the_place_of_the_picture(page):
    shown = "return document.querySelector('canvas.picture').toDataURL()"
    seen = {page.run(shown)}
    for name in ("overdraw", "wireframe"):
        page.run("""const select = document.querySelector('#stage select');
        select.value = arguments[0]; select.dispatchEvent(new Event('change'))""", name)  # fmt: skip
        page.wait("return document.body.dataset.ready.endsWith(`/${arguments[0]}`)", name)
        seen.add(page.run(shown))
    page.run("""const buttons = [...document.querySelectorAll('#stage .choice button')];
    buttons.find((one) => one.dataset.name === 'changed').click()""")
    page.wait("return document.body.dataset.ready.endsWith('/changed')")
    assert "changed" in page.run("return document.querySelector('.trouble').textContent")
    seen.add(page.run(shown))
    assert len(seen) == 4


def test_a_program_is_stepped_with_all_its_lanes(page):
    pick(page)
    page.wait("return document.querySelector('.touch')")
    page.run("""const buttons = [...document.querySelectorAll('.touch footer button')];
    buttons.find((one) => one.textContent.startsWith('step')).click()""")
    page.wait("return document.querySelector('.lanes')")
    for _ in range(3):
        page.keys("]")
    assert "step 4 of" in page.wait("return document.querySelector('.stepper').textContent")
    held = page.run("return document.querySelectorAll('.lanes tbody tr').length")
    assert held > 0
    page.run("document.querySelector('.stepper label input').click()")
    assert page.wait("return document.querySelectorAll('.lanes thead th').length === 17")
    now = page.run("return document.querySelector('.program tr.now').textContent")
    assert page.run("return V.run.steps[3].text") in now


def test_a_value_is_edited_in_place_and_taken_back(page):
    before = pixel(page)
    page.run("V.go({draw: arguments[0], view: 'state'})", DRAWS)
    page.wait(SHOWN, "state")
    page.run("""const records = [...document.querySelectorAll('details.record')];
    const record = records.find((one) => one.querySelector('.id')?.textContent === '96');
    const row = (name) => [...record.querySelectorAll('tr')].find((one) => one.cells[0].textContent === name);
    row('enable forward').querySelector('.edit').click();
    const input = row('enable forward').querySelector('input'); input.value = 'x';
    input.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}));""")
    assert "no such value" in page.wait("return document.querySelector('.problem')?.textContent")
    (refused,) = page.errors()
    assert "422" in refused
    page.run("""const input = document.querySelector('.editing'); input.value = '0';
    input.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}));""")
    edition = page.wait("return V.place.edition")
    page.wait(READY)
    assert pixel(page) != before
    assert page.run("return document.querySelector('#top .edition select').value") == str(edition)
    page.run("document.activeElement.blur()")
    page.keys("e")
    page.wait(READY)
    assert page.run("return V.place.edition") == 0
    assert pixel(page) == before


def test_a_search_finds_records_and_draws(page):
    page.keys("/")
    assert page.run("return document.activeElement.id") == "search"
    page.keys(*"draw 2")
    rows = page.wait(
        "return [...document.querySelectorAll('#events .row.draw')].map((one) => one.textContent)"
    )
    assert [one.split(" · ")[0] for one in rows] == ["draw 2"]
    page.keys("\ue007")
    assert page.wait("return V.place.draw === 2")


def test_a_page_from_disk_needs_no_server(browser, session_of, tmp_path):
    session = session_of(SMALL)
    path = tmp_path / "frame.html"
    path.write_text(one_page(session, 2, pixel=(32, 24), grid=(3, 3)), encoding="utf-8")
    browser.go(path.as_uri())
    browser.wait(READY)
    assert browser.run("return V.place.x") == 32
    browser.wait("return document.querySelector('.touch')")
    for name in VIEWS:
        browser.run("V.go({view: arguments[0]})", name)
        assert "only a part" not in browser.wait(SHOWN, name)
    browser.run("V.go({view: 'pixel'})")
    pick(browser)
    x, y = browser.run("return [V.place.x, V.place.y]")
    job = browser.run("return V.jobNow()")
    values = {"frame": "2", "job": str(job), "x": str(x), "y": str(y)}
    assert browser.run("return V.inside.answers[arguments[0]]", f"pixel?frame=2&job={job}&x={x}&y={y}") == (
        json.loads(ask(session, "pixel", values).data)
    )
    assert browser.run("return document.querySelectorAll('.edit').length") == 0
    assert browser.errors() == []
