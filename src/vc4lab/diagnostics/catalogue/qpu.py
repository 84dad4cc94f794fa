"""Messages about QPU programs."""

from vc4lab.diagnostics.catalogue.qpu_compute import COMPUTE_ENTRIES
from vc4lab.diagnostics.catalogue.qpu_lint import LINT_ENTRIES
from vc4lab.diagnostics.entry import Entry, Severity

ENTRIES = [
    Entry(
        "QPU-001",
        "Program without an end",
        "No instruction with a program-end signal was found before the limit of instructions that "
        "are read. The hardware would run on through whatever comes after.",
        "AG100-R p. 29, signalling bits: program end takes effect after two delay slots",
        "Check the code address in the shader record, and that the program ends with thrend and "
        "two more instructions.",
        Severity.ERROR,
    ),
    Entry(
        "QPU-002",
        "Branch between instructions",
        "A branch leads to an address that is not a multiple of 8 from the program's entry: no "
        "instruction can lie there.",
        "AG100-R p. 34, branch instruction",
        "Use brr or bra with a label.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-040",
        "Facility not available to this program",
        "The program uses something that its kind of shader does not have, or that vc4lab does not "
        "have for it yet: the tile buffer in a vertex shader, the VPM in a fragment shader, a "
        "breakpoint without a debugger.",
        "AG100-R pp. 37-38, register map and restrictions",
        "Check that the shader record points to the right code.",
        Severity.ERROR,
    ),
    Entry(
        "QPU-041",
        "Program does not end",
        "The program executed more instructions than its budget without reaching its end. A loop "
        "whose condition depends on lanes that hold no data is a usual cause: such lanes never "
        "leave it. A fragment shader may execute four million instructions for a block of pixels "
        "(in the golden interpreter, 400 thousand); what is drawn with one that does not end is "
        "left out.",
        "AG100-R p. 34, branches look at all 16 lanes",
        "Bound the loop, or test only lanes with data. A user program that really computes this "
        "long gets more by VC4LAB_BUDGET=N in the environment (instructions for each program), or "
        "by `vc4lab run --budget N`.",
        Severity.ERROR,
    ),
    Entry(
        "QPU-042",
        "Execution leaves the program",
        "A branch to a register led to an address where no instruction can lie (it is not a "
        "multiple of 8 from the program's entry), or the code that was met is longer than vc4lab "
        "follows (131,072 instructions).",
        "AG100-R p. 34, branch instruction",
        "Check how the register got its value: absolute branches need an address of the QPU's, "
        "relative ones count from the end of the three delay slots.",
        Severity.ERROR,
    ),
    Entry(
        "QPU-043",
        "Branches overlap too much",
        "Branches in each other's delay slots lead to more combinations than the compiler follows.",
        "AG100-R p. 34: no branch in the delay slots of another",
        "Keep three other instructions between branches, if speed matters.",
        Severity.ERROR,
    ),
    Entry(
        "QPU-044",
        "Register branch in a large program",
        "A branch to a register value can go anywhere. Where nothing can be learned while the "
        "program runs, the compiler follows that in small programs only.",
        "AG100-R p. 34, branch instruction",
        "Nothing needs to be done: such a program runs in the interpreter.",
        Severity.ERROR,
    ),
    Entry(
        "QPU-045",
        "Program too long to compile",
        "The shader has more instructions than the compiler takes at once; real ones have "
        "hundreds. A code address that points at other data is a usual cause. (User programs are "
        "compiled in parts, whatever their length.)",
        "vc4lab's own limit",
        "Check the code address in the shader record.",
        Severity.ERROR,
    ),
    Entry(
        "QPU-046",
        "Requests depend on a branch",
        "Where two ways of the program meet, a different number of varyings was read, or different "
        "texture requests are under way, depending on which way was taken. The chip just goes on "
        "with its queues; compiled code cannot.",
        "hardware reference 4.14, 4.15",
        "Read varyings before the first branch and a texture's result in the block of its "
        "request, as drivers do, if speed matters.",
        Severity.ERROR,
    ),
    Entry(
        "QPU-047",
        "Execution ran into zeroed memory",
        "Execution went past the program's last instruction, or a branch led to where no code is, "
        "and met words of 0. To the hardware they are breakpoints: the QPU stops there for ever.",
        "AG100-R p. 29, signalling bits: 0 is a breakpoint",
        "End every way through the program with `nop; nop; thrend` and two more instructions; "
        "branch targets count from after the three delay slots; copy the whole program.",
        Severity.ERROR,
    ),
    *COMPUTE_ENTRIES,
    *LINT_ENTRIES,
]
