"""Runs fuzz cases in forked batches, so that even a segmentation fault is only a failed case.

    python -m tests.fuzz.runner                     # a few cases of every fuzzer
    python -m tests.fuzz.runner --bytes 10000000    # until the V3D got that many mutated bytes
    python -m tests.fuzz.runner lists --seed 3 --case 1234   # one case again, here, with traceback

A case that dies (signal), raises, or uses more CPU time than `CPU_LIMIT` is a failure: it is
reported with its seed and, if it fails again, with the smallest set of edits that still fails.
With --jobs several fuzzers run side by side, each in a process of its own that reports how far it
is.
"""

import argparse
import contextlib
import faulthandler
import json
import mmap
import os
import random
import signal
import struct
import sys
import tempfile
import threading
import time
import traceback
from dataclasses import dataclass, field, replace
from typing import Any

CPU_LIMIT = 12.0
"""CPU seconds of one case, compiling included, after which it counts as a hang."""
PATIENCE = 4
"""The same limit for cases in the reference interpreter, so many times longer."""
WALL_LIMIT = 180.0
"""Seconds without a new case and without using the CPU after which a batch counts as a deadlock."""
TELL_EVERY = 30.0
"""Seconds between two lines of progress."""
BATCH = 400
"""Cases of one process."""
MINIMISE_TRIALS = 120
MAX_FAILURES = 25
"""A fuzzer with so many failures is stopped."""

_SHARED = struct.Struct("<qqqd")  # case, units, cases done, slowest


@dataclass
class Failure:
    """A failed case."""

    fuzzer: str
    seed: int
    case: int
    how: str
    plan: str = ""

    def __str__(self) -> str:
        again = f"python -m tests.fuzz.runner {self.fuzzer} --seed {self.seed} --case {self.case}"
        return f"{again}\n{self.how}\n{self.plan}"


@dataclass
class Outcome:
    """What a fuzzer's cases came to."""

    name: str
    cases: int = 0
    units: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    slow_case: int = -1
    cpu: float = 0.0
    memory: int = 0
    failures: list[Failure] = field(default_factory=list)

    def line(self) -> str:
        """One row of the table."""
        rate = self.units / self.seconds if self.seconds else 0
        return (
            f"{self.name:12s} {self.cases:8d} cases {self.units:11,d} bytes {self.seconds:7.1f} s"
            f" {rate:10,.0f} bytes/s   slowest {self.slowest:5.2f} s (case {self.slow_case})"
            f"   at most {self.memory >> 10} MB   {len(self.failures)} failures"
        )


def case_random(name: str, seed: int, case: int) -> random.Random:
    """The random numbers of a case."""
    return random.Random(f"{name}:{seed}:{case}")


def silence() -> None:
    """A crash on purpose leaves no core file."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Runner:
    """One fuzzer and its processes."""

    def __init__(self, name: str, seed: int) -> None:
        from tests.fuzz import FUZZERS

        self.fuzzer = FUZZERS[name]()
        self.seed = seed
        self.outcome = Outcome(name)
        self._shared = mmap.mmap(-1, 4096)
        self._start = self._told = 0.0
        self._goal = ""

    def run(
        self,
        *,
        cases: int | None = None,
        seconds: float | None = None,
        units: int | None = None,
        first: int = 0,
    ) -> Outcome:
        """Runs so many cases, or for so long, or until so many bytes were mutated."""
        start = self._told = self._start = time.monotonic()
        self._goal = f" of {units:,d}" if units is not None else ""
        case, end = first, first + (cases if cases is not None else 1 << 40)
        while case < end and len(self.outcome.failures) < MAX_FAILURES:
            if units is not None and self.outcome.units >= units:
                break
            left = None if seconds is None else seconds - (time.monotonic() - start)
            if left is not None and left <= 0:
                break
            case = self._batch(case, min(case + BATCH, end), left)
        self.outcome.seconds = time.monotonic() - start
        return self.outcome

    def _batch(self, first: int, end: int, seconds: float | None) -> int:
        """Cases first … end-1 in a process; returns the number of the next case."""
        self._shared[: _SHARED.size] = _SHARED.pack(first, 0, 0, 0.0)
        with tempfile.TemporaryFile() as log:
            process = os.fork()
            if process == 0:
                self._child(log.fileno(), first, end, seconds)
            how = self._watch(process)
            case, units, done, slowest = _SHARED.unpack(self._shared[: _SHARED.size])
            log.seek(0)
            text = log.read().decode(errors="replace")
        out = self.outcome
        out.units += units
        out.cases += done
        if how is None:
            slow = json.loads(text.splitlines()[-1]) if text else {"case": -1, "seconds": 0.0}
            if slow["seconds"] > out.slowest:
                out.slowest, out.slow_case = slow["seconds"], slow["case"]
            return int(slow["next"])
        if slowest > out.slowest:
            out.slowest = slowest
        failure = Failure(out.name, self.seed, case, f"{how}\n{text[-1800:]}")
        failure.plan = self._minimise(case)
        out.failures.append(failure)
        print(failure, flush=True)
        return int(case) + 1

    def _tell(self) -> None:
        """A line of progress from time to time."""
        now = time.monotonic()
        if now - self._told < TELL_EVERY:
            return
        self._told = now
        out = self.outcome
        _, units, done, _ = _SHARED.unpack(self._shared[: _SHARED.size])
        print(
            f"  … {out.name}: {out.units + units:,d}{self._goal} bytes, {out.cases + done} cases, "
            f"{now - self._start:.0f} s ({out.cpu:.0f} s of CPU before this batch), "
            f"{len(out.failures)} failures",
            flush=True,
        )

    def _watch(self, process: int) -> str | None:
        """Waits for a batch; None if it ended well, else how it ended."""
        last: Any = None
        since = time.monotonic()
        while True:
            found, status, usage = os.wait4(process, os.WNOHANG)
            if found:
                self.outcome.cpu += usage.ru_utime + usage.ru_stime
                self.outcome.memory = max(self.outcome.memory, usage.ru_maxrss)
                break
            self._tell()
            now = self._shared[: _SHARED.size], _processor_time(process)
            if now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > WALL_LIMIT:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
                return f"no progress for {WALL_LIMIT} s"
            time.sleep(0.02)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            if number == signal.SIGPROF:
                return f"more than {CPU_LIMIT} s of CPU time (interpreter: {PATIENCE} times that)"
            return f"killed by {signal.Signals(number).name}"
        return None if os.WEXITSTATUS(status) == 0 else "an exception"

    def _child(self, log: int, first: int, end: int, seconds: float | None) -> None:
        """The process of a batch; never returns."""
        code = 1
        try:
            silence()
            file = os.fdopen(os.dup(log), "w")
            faulthandler.enable(file)
            faulthandler.register(signal.SIGPROF, file, all_threads=True, chain=True)
            hidden: list[Any] = []  # what was raised in callbacks, destructors and threads
            sys.unraisablehook = hidden.append
            threading.excepthook = hidden.append
            stop = None if seconds is None else time.monotonic() + seconds
            slowest, slow_case, units = 0.0, -1, 0
            case = first
            while case < end and (stop is None or time.monotonic() < stop):
                self._shared[: _SHARED.size] = _SHARED.pack(case, units, case - first, slowest)
                plan = self.fuzzer.plan(case_random(self.outcome.name, self.seed, case))
                began = time.process_time()
                signal.setitimer(signal.ITIMER_PROF, _limit(plan))
                try:
                    self.fuzzer.run(plan)
                    if hidden:
                        raise RuntimeError("raised where it is not seen") from hidden[0].exc_value
                except BaseException:
                    signal.setitimer(signal.ITIMER_PROF, 0)
                    traceback.print_exc(file=file)
                    file.flush()
                    os._exit(1)
                signal.setitimer(signal.ITIMER_PROF, 0)
                used = time.process_time() - began
                if used > slowest:
                    slowest, slow_case = used, case
                units += plan.units
                case += 1
            self._shared[: _SHARED.size] = _SHARED.pack(case, units, case - first, slowest)
            json.dump({"case": slow_case, "seconds": slowest, "next": case}, file)
            file.flush()
            code = 0
        except BaseException:
            traceback.print_exc(file=file)
            file.flush()
        finally:
            os._exit(code)

    # -- minimising --------------------------------------------------------------------------------

    def _fails(self, plan: Any) -> bool:
        """Whether a plan fails, in a process of its own."""
        process = os.fork()
        if process == 0:
            code = 1
            with contextlib.suppress(BaseException):
                silence()
                hidden: list[Any] = []
                sys.unraisablehook = hidden.append
                signal.setitimer(signal.ITIMER_PROF, _limit(plan))
                self.fuzzer.run(plan)
                code = 1 if hidden else 0
            os._exit(code)
        _, status = os.waitpid(process, 0)
        return status != 0

    def _minimise(self, case: int) -> str:
        plan = self.fuzzer.plan(case_random(self.outcome.name, self.seed, case))
        began = time.monotonic()
        if not self._fails(plan):
            return "does not fail alone: it needs the cases before it"
        edits = list(plan.edits)
        trials = MINIMISE_TRIALS
        size = max(1, len(edits) // 2)
        while size and trials and time.monotonic() - began < 60:
            start = 0
            while start < len(edits) and trials and time.monotonic() - began < 60:
                fewer = edits[:start] + edits[start + size :]
                trials -= 1
                if self._fails(replace(plan, edits=tuple(fewer))):
                    edits = fewer
                else:
                    start += size
            size //= 2
        return f"scene {plan.scene}, options {plan.options}, edits {show(edits)}"


def _limit(plan: Any) -> float:
    """CPU seconds that a case may use."""
    return CPU_LIMIT * (PATIENCE if plan.options.get("engine") == "interpreter" else 1)


def _processor_time(process: int) -> str:
    """What the process has used of the CPU so far: a starving one is not a dead one."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return " ".join(file.read().rpartition(")")[2].split()[11:13])
    except OSError:
        return ""


def show(edits: list[Any]) -> str:
    """Edits in short."""
    parts = []
    for edit in edits[:60]:
        if isinstance(edit, tuple) and len(edit) == 2 and isinstance(edit[1], bytes):
            text = edit[1].hex() if len(edit[1]) <= 200 else edit[1][:200].hex() + "..."
            parts.append(f"{edit[0]:#x}: {text}" if isinstance(edit[0], int) else f"{edit[0]}: {text}")
        else:
            parts.append(repr(edit)[:400])
    return "[" + ", ".join(parts) + ("]" if len(edits) <= 60 else ", ...]")


def one(name: str, seed: int, case: int) -> None:
    """One case in this process."""
    from tests.fuzz import FUZZERS

    fuzzer = FUZZERS[name]()
    plan = fuzzer.plan(case_random(name, seed, case))
    print(f"scene {plan.scene}, options {plan.options}, edits {show(list(plan.edits))}")
    faulthandler.enable()
    began = time.process_time()
    fuzzer.run(plan)
    print(f"{time.process_time() - began:.2f} s")


def total(outcomes: list[Outcome], name: str = "all") -> str:
    """The last row of the table."""
    units, seconds = sum(o.units for o in outcomes), sum(o.seconds for o in outcomes)
    rate = units / seconds if seconds else 0
    failures = sum(len(o.failures) for o in outcomes)
    cases = sum(o.cases for o in outcomes)
    return (
        f"{name:12s} {cases:8d} cases {units:11,d} bytes {seconds:7.1f} s {rate:10,.0f} bytes/s"
        f"   {failures} failures"
    )


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    from tests.fuzz import FUZZERS
    from tests.fuzz.work import Work, in_turn, side_by_side

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.runner")
    parser.add_argument("names", nargs="*", choices=[[], *FUZZERS])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="run one case here")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--cases", type=int, help="cases of each fuzzer")
    parser.add_argument("--seconds", type=float, help="time of each fuzzer")
    parser.add_argument("--bytes", type=int, help="mutated bytes of the V3D's fuzzers together")
    parser.add_argument("--units", type=int, help="mutated bytes of each fuzzer")
    parser.add_argument("--minutes", type=float, help="stop each fuzzer after so long")
    parser.add_argument("--jobs", type=int, default=1, help="fuzzers side by side")
    parser.add_argument("--json", help="file for the results")
    parser.add_argument("--quiet", action="store_true", help="no table at the end")
    parser.add_argument("--own-cache", action="store_true", help="a fresh cache of compiled code")
    options = parser.parse_args(arguments)
    if options.case is not None:
        one(options.names[0], options.seed, options.case)
        return 0
    with contextlib.ExitStack() as stack:
        if options.own_cache:
            os.environ["VC4LAB_CACHE"] = stack.enter_context(tempfile.TemporaryDirectory())
        names = options.names or list(FUZZERS)
        shares = sum(kind.share for kind in FUZZERS.values() if kind.v3d) or 1
        works = []
        for name in names:
            kind = FUZZERS[name]
            cases, units, seconds = options.cases, options.units, options.seconds
            if options.bytes is not None:
                units = options.bytes * kind.share // shares + 1
            elif cases is None and seconds is None and units is None:
                cases = kind.quick
            if options.minutes is not None:
                seconds = 60 * options.minutes
            work = Work(name, options.seed, cases, seconds, units, options.first)
            works.append(work)
        outcomes = side_by_side(works, options.jobs) if options.jobs > 1 else in_turn(works, options.quiet)
        if not options.quiet:
            v3d = [outcome for outcome in outcomes if FUZZERS[outcome.name].v3d]
            if v3d and len(v3d) < len(outcomes):
                print(total(v3d, "V3D"), flush=True)
            print(total(outcomes), flush=True)
    if options.json:
        with open(options.json, "w") as file:
            table = [{**vars(o), "failures": [str(failure) for failure in o.failures]} for o in outcomes]
            json.dump(table, file)
    return 1 if any(outcome.failures for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
