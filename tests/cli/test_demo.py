"""The bundled demo is the naan example."""

from importlib.resources import files
from pathlib import Path

CARD = Path(__file__).parent.parent.parent / "examples" / "naan" / "sdcard"


def test_the_bundled_card_is_the_example():
    bundled = files("vc4lab") / "data" / "demo"
    example = {p.name: p.read_bytes() for p in CARD.iterdir()}
    assert {p.name: p.read_bytes() for p in bundled.iterdir()} == example
