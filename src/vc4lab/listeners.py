"""Listeners for events: any number for each kind, and no cost while there are none.

The source of an event checks for subscriptions and makes no event without them::

    if self.frame_done.subscriptions:
        self.frame_done.emit(FrameDone(count))

Listeners are called in the order in which they subscribed, in the thread that emits the event, and
must not change what they look at. One that unsubscribes gets no further event, not even the
one that is being emitted; one that subscribes meanwhile gets the next.

A listener that raises does not keep the event from the others. `StrictStop` and what is no
`Exception` (an interrupt from the keyboard) pass at once, as they do from a message. Any other
exception is raised after all were called; where that would leave work half done, it goes to `keep`
instead, and what does the work raises it when the work is through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from vc4lab.diagnostics import StrictStop

Event = TypeVar("Event")


class Subscription(Generic[Event]):
    """One listener, until `close` is called; also as a context manager."""

    __slots__ = ("_listeners", "call")

    def __init__(self, listeners: Listeners[Event], call: Callable[[Event], object]) -> None:
        self._listeners: Listeners[Event] | None = listeners
        self.call = call

    @property
    def is_open(self) -> bool:
        """Whether it still gets events."""
        return self._listeners is not None

    def close(self) -> None:
        """Unsubscribe; at any time, also repeatedly."""
        listeners, self._listeners = self._listeners, None
        if listeners is not None:
            listeners.put(tuple(one for one in listeners.subscriptions if one is not self))

    def __enter__(self) -> Subscription[Event]:
        return self

    def __exit__(self, *_details: object) -> None:
        self.close()


class Listeners(Generic[Event]):
    """The listeners for one kind of event.

    Attributes
    ----------
    subscriptions
        In the order in which they are called; empty: there is no need for an event.
    keep
        Takes the exceptions of listeners; None: they are raised after all were called.
    """

    __slots__ = ("groups", "keep", "subscriptions")

    def __init__(self, keep: Callable[[Exception], object] | None = None) -> None:
        self.keep = keep
        self.subscriptions: tuple[Subscription[Event], ...] = ()
        self.groups: tuple[AnyListener, ...] = ()

    def subscribe(self, call: Callable[[Event], object], *, first: bool = False) -> Subscription[Event]:
        """`call(event)` from now on with each event; `first`: before those that listen already."""
        one = Subscription(self, call)
        self.put((one, *self.subscriptions) if first else (*self.subscriptions, one))
        return one

    def put(self, subscriptions: tuple[Subscription[Event], ...]) -> None:
        """These listen from now on."""
        self.subscriptions = subscriptions
        for group in self.groups:
            group.update()

    def emit(self, event: Event) -> None:
        """Call all of them."""
        failures: list[Exception] = []
        for one in self.subscriptions:
            if one.is_open:
                try:
                    one.call(event)
                except StrictStop:
                    raise
                except Exception as error:  # listeners may raise anything
                    failures.append(error)
        if failures and self.keep is None:
            raise failures[0]
        for failure in failures:
            assert self.keep is not None
            self.keep(failure)


class AnyListener:
    """Several kinds of events: `present` is whether there is a listener for any of them.

    Code that emits all of them, and mostly has no listener, tests one attribute.
    """

    __slots__ = ("_kinds", "present")

    def __init__(self, *kinds: Listeners[Any]) -> None:
        self._kinds = kinds
        for kind in kinds:
            kind.groups = (*kind.groups, self)
        self.update()

    def update(self) -> None:
        """The subscriptions of a kind have changed."""
        self.present = any(kind.subscriptions for kind in self._kinds)


class OneListener:
    """An attribute that takes one listener, as it was before there could be several.

    Setting it replaces the listener that was set by it before; others are not touched. `events` is
    the path to the `Listeners` from the object that has the attribute, `arguments` says what the
    listener gets of an event.
    """

    def __init__(self, events: str, arguments: Callable[[Any], tuple[Any, ...]]) -> None:
        self._path = events.split(".")
        self._arguments = arguments

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = f"_{name}_subscription"

    def __get__(self, owner: Any, _kind: type | None = None) -> Any:
        known = getattr(owner, self._name, None)
        return known[0] if known is not None else None

    def __set__(self, owner: Any, call: Callable[..., object] | None) -> None:
        known = getattr(owner, self._name, None)
        if known is not None:
            delattr(owner, self._name)
            known[1].close()
        if call is not None:
            listeners = owner
            for name in self._path:
                listeners = getattr(listeners, name)
            arguments = self._arguments
            one = listeners.subscribe(lambda event: call(*arguments(event)))
            setattr(owner, self._name, (call, one))
