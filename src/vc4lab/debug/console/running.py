"""Commands that go on and back."""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.debug.console.command import MOST, Command, Context, count_of, take_options
from vc4lab.debug.expressions import ExpressionError
from vc4lab.debug.stops import Stop


def _counted(name: str) -> Callable[[Context, str], None]:
    """A command that calls a method of the session with how often."""

    def run(context: Context, text: str) -> None:
        method: Callable[[int], Stop] = getattr(context.session, name)
        method(count_of(context.session, text))
        context.show_stop()

    return run


def _next_instruction(context: Context, text: str) -> None:
    context.session.step_over(count_of(context.session, text), lines=False)
    context.show_stop()


def _continue(context: Context, text: str) -> None:
    """N: the breakpoint that stops is passed over N-1 times."""
    session = context.session
    times = count_of(session, text)
    stop = session.stop.breakpoint
    if times > 1 and stop is not None and stop.number in session.breakpoints.items:
        stop.skip = times - 1
    session.proceed()
    context.show_stop()


def _until(context: Context, text: str) -> None:
    text, options = take_options(context.session, text)
    addresses = context.session.locate(text)
    context.session.run_to(addresses, options.get("qpu", context.session.selected))
    context.show_stop()


def _turns(context: Context, text: str) -> None:
    context.session.proceed(count_of(context.session, text))
    context.show_stop()


def _reverse_continue(context: Context, text: str) -> None:
    context.session.proceed_back()
    context.show_stop()


def _run(context: Context, text: str) -> None:
    context.session.restart()
    context.show_stop()


def _goto(context: Context, text: str) -> None:
    value = context.session.evaluate(text) if text else None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
        raise ExpressionError("goto TURN: a position that was reached before, as `info position` says it")
    context.session.go_to(value)
    context.session.stop = Stop(context.session.stop.cause, context.session.selected)
    context.show_stop()


COMMANDS = (
    Command(("step", "s"), "[N]", "go on to another line of the source", _counted("step_line"), True),
    Command(("stepi", "si"), "[N]", "execute one instruction of the selected QPU", _counted("step"), True),
    Command(("next", "n"), "[N]", "as step; subroutines as a whole", _counted("step_over"), True),
    Command(("nexti", "ni"), "[N]", "as stepi; subroutines as a whole", _next_instruction, True),
    Command(("continue", "c"), "[N]", "go on to the next breakpoint, fault or end", _continue, True),
    Command(("until", "advance", "u"), "PLACE [qpu N]", "go on to a place", _until, False),
    Command(("turns",), "N", "go on for N turns, of whichever QPUs have them", _turns, True),
    Command(("reverse-step", "rs"), "[N]", "back to the line before", _counted("back_line"), True),
    Command(("reverse-stepi", "rsi", "back"), "[N]", "back by an instruction", _counted("back"), True),
    Command(("reverse-continue", "rc"), "", "back to the last stop", _reverse_continue, True),
    Command(("run", "r", "start"), "", "back to the beginning", _run, False),
    Command(("goto",), "TURN", "to a position that was reached before", _goto, False),
)  # fmt: skip
