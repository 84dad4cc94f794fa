"""Tables with a bound."""

from vc4lab.bounded import Bounded


def test_full_tables_start_anew():
    table: Bounded[int, str] = Bounded(3)
    for number in range(3):
        table[number] = str(number)
    table[1] = "again"
    assert dict(table) == {0: "0", 1: "again", 2: "2"}
    table[3] = "3"
    assert dict(table) == {3: "3"}
    known = table[4] = "4"
    assert (known, len(table)) == ("4", 2)
