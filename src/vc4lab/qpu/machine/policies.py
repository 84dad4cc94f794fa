"""Ways to decide while a program is scheduled; the shortest program that they give is taken.

Which result may have one of the four accumulators, and how far the shader's own order counts, is
decided while later instructions are unknown. No choice is the best for all programs: over the
shaders of glmark2 three together made programs 2 % shorter than the best single one.
"""

from __future__ import annotations

from typing import NamedTuple

from vc4lab.qpu.machine.code import Op, Reg


class Policy(NamedTuple):
    """One way.

    Attributes
    ----------
    order
        How much sooner an operation comes for each place it has before another in the shader's
        own order, in instructions of the longest chain that waits for it.
    readers
        Results with more readers than so many go to a file.
    waiting
        A result goes to a file, too, if a reader of it waits for more operations than so many.
    only_if_ready
        Whether those that a reader waits for besides must be such as can be done at once.
    in_order
        Operations keep their order as far as they can, which needs fewer registers.
    has_words
        Conditions that only choose are kept as words, not set as flags where they are read: what
        they are made of ends sooner, in shaders that test the same places again and again.
    most
        It is only tried for programs with at most so many operations.
    """

    order: float = 0.0
    readers: int = 4
    waiting: int = 2
    only_if_ready: bool = True
    in_order: bool = False
    has_words: bool = False
    most: int = 600

    def is_near(self, reg: Reg) -> bool:
        """Whether all that reads a value can follow at once."""
        return len(reg.readers) <= self.readers and all(
            op.waiting <= 1 or (op.waiting <= self.waiting and self._may_wait(op, reg)) for op in reg.readers
        )

    def _may_wait(self, op: Op, reg: Reg) -> bool:
        """Whether an operation that waits for another one, too, soon does not."""
        return not self.only_if_ready or all(
            isinstance(one, Reg) and (one is reg or one.op is None or one.op.is_done or not one.op.waiting)
            for one in op.args
        )


POLICIES = (
    Policy(order=0.05),
    Policy(readers=2, only_if_ready=False),
    Policy(order=0.2),
    Policy(waiting=1, most=120),
)
SPARING = Policy(in_order=True), Policy(has_words=True)
"""One after another if registers do not suffice for the others."""
