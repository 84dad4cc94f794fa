"""Listeners: order, leaving and joining meanwhile, exceptions, attributes that take one of them."""

import pytest

from vc4lab.diagnostics import Reporter, StrictStop
from vc4lab.listeners import AnyListener, Listeners, OneListener


def test_all_hear_in_order() -> None:
    heard: list[str] = []
    listeners: Listeners[int] = Listeners()
    assert listeners.subscriptions == ()
    listeners.subscribe(lambda n: heard.append(f"a{n}"))
    second = listeners.subscribe(lambda n: heard.append(f"b{n}"))
    listeners.subscribe(lambda n: heard.append(f"c{n}"), first=True)
    listeners.emit(1)
    assert heard == ["c1", "a1", "b1"]
    assert second.is_open
    second.close()
    second.close()
    assert not second.is_open
    listeners.emit(2)
    assert heard[3:] == ["c2", "a2"]


def test_one_function_may_listen_twice() -> None:
    heard: list[int] = []
    listeners: Listeners[int] = Listeners()
    once = listeners.subscribe(heard.append)
    listeners.subscribe(heard.append)
    listeners.emit(1)
    once.close()
    listeners.emit(2)
    assert heard == [1, 1, 2]


def test_a_context_manager_unsubscribes() -> None:
    heard: list[int] = []
    listeners: Listeners[int] = Listeners()
    with listeners.subscribe(heard.append) as one:
        listeners.emit(1)
        assert one.is_open
    listeners.emit(2)
    assert heard == [1]
    assert not listeners.subscriptions


def test_who_leaves_meanwhile_hears_nothing_any_more() -> None:
    heard: list[str] = []
    listeners: Listeners[int] = Listeners()

    def closing(_event: int) -> None:
        heard.append("closing")
        own.close()
        other.close()

    own = listeners.subscribe(closing)
    other = listeners.subscribe(lambda _event: heard.append("other"))
    listeners.subscribe(lambda _event: heard.append("last"))
    listeners.emit(1)
    assert heard == ["closing", "last"], "the other one has not heard even this event"
    listeners.emit(2)
    assert heard == ["closing", "last", "last"]


def test_who_joins_meanwhile_hears_the_next_event() -> None:
    heard: list[int] = []
    listeners: Listeners[int] = Listeners()

    def joining(event: int) -> None:
        if event == 1:
            listeners.subscribe(heard.append)

    listeners.subscribe(joining)
    listeners.emit(1)
    assert heard == []
    listeners.emit(2)
    assert heard == [2]


def test_an_exception_comes_after_all_have_heard() -> None:
    heard: list[int] = []
    listeners: Listeners[int] = Listeners()

    def failing(_event: int) -> None:
        raise LookupError("first")

    def failing_too(_event: int) -> None:
        raise ValueError("second")

    listeners.subscribe(failing)
    listeners.subscribe(failing_too)
    listeners.subscribe(heard.append)
    with pytest.raises(LookupError, match="first"):
        listeners.emit(1)
    assert heard == [1]
    kept: list[Exception] = []
    listeners.keep = kept.append
    listeners.emit(2)
    assert heard == [1, 2]
    assert [type(error) for error in kept] == [LookupError, ValueError]


@pytest.mark.parametrize("kind", ["strict", "keyboard"])
def test_what_stops_the_machine_passes_at_once(kind: str) -> None:
    heard: list[int] = []
    kept: list[Exception] = []
    listeners: Listeners[int] = Listeners(kept.append)

    def stops(_event: int) -> None:
        if kind == "keyboard":
            raise KeyboardInterrupt
        Reporter(strict=True).report("CLE-001", "an error")

    listeners.subscribe(stops)
    listeners.subscribe(heard.append)
    with pytest.raises(KeyboardInterrupt if kind == "keyboard" else StrictStop):
        listeners.emit(1)
    assert not heard
    assert not kept


class Owner:
    on_number = OneListener("inner.listeners", lambda event: (event, event + 1))

    def __init__(self) -> None:
        self.inner = self
        self.listeners: Listeners[int] = Listeners()


def test_an_attribute_takes_one_listener() -> None:
    heard: list[tuple[str, int, int]] = []
    plain: list[int] = []
    owner, other = Owner(), Owner()
    owner.listeners.subscribe(plain.append)
    assert owner.on_number is None
    for name in ("a", "b"):
        call = lambda *numbers, name=name: heard.append((name, *numbers))  # noqa: E731
        owner.on_number = call
        assert owner.on_number is call
        owner.listeners.emit(1)
    other.listeners.emit(7)
    owner.on_number = None
    owner.listeners.emit(2)
    assert heard == [("a", 1, 2), ("b", 1, 2)]
    assert plain == [1, 1, 2]
    assert owner.on_number is None


def test_one_attribute_for_several_kinds() -> None:
    first, second, other = Listeners[int](), Listeners[str](), Listeners[int]()
    early = second.subscribe(lambda _event: None)
    any_listener = AnyListener(first, second)
    assert any_listener.present
    early.close()
    assert not any_listener.present
    other.subscribe(lambda _event: None)
    assert not any_listener.present
    with first.subscribe(lambda _event: None):
        with second.subscribe(lambda _event: None):
            assert any_listener.present
        assert any_listener.present
    assert not any_listener.present
