"""Messages about QPU programs."""

from vc4lab.diagnostics.catalogue.qpu_compute import COMPUTE_ENTRIES
from vc4lab.diagnostics.catalogue.qpu_lint import LINT_ENTRIES
from vc4lab.diagnostics.entry import Entry, Severity

ENTRIES = [
    Entry(
        "QPU-001",
        "Program without an end",
        "No instruction with a program-end signal was found within the number of instructions that "
        "vc4lab reads. The hardware would execute whatever follows.",
        "AG100-R p. 29, signalling bits: program end takes effect after two delay slots",
        "Check the code address in the shader record, and that the program ends with thrend and "
        "two more instructions.",
    ),
    Entry(
        "QPU-002",
        "Branch to a misaligned address",
        "A branch leads to an address that is not a multiple of 8 bytes from the program's entry, "
        "where no instruction can be.",
        "AG100-R p. 34, branch instruction",
        "Use brr or bra with a label.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-040",
        "Feature not available to this program",
        "The program uses something that its kind of shader does not have, or that vc4lab does not "
        "implement for it: the tile buffer in a vertex shader, the VPM in a fragment shader, a "
        "breakpoint without a debugger.",
        "AG100-R pp. 37-38, register map and restrictions",
        "Check that the shader record points to the right code.",
    ),
    Entry(
        "QPU-041",
        "Program does not end",
        "The program executed more instructions than its limit without reaching its end. A common "
        "cause is a loop whose condition depends on lanes that hold no data: such lanes never "
        "leave it. A fragment shader may execute four million instructions for a block of pixels "
        "(400 thousand in the reference interpreter); draws with a shader that does not end are left "
        "out.",
        "AG100-R p. 34, branches look at all 16 lanes",
        "Bound the loop, or test only lanes with data. Raise the limit for a user program that "
        "really computes this long with VC4LAB_BUDGET=N in the environment (instructions for each "
        "program) or `vc4lab run --budget N`.",
    ),
    Entry(
        "QPU-042",
        "Execution leaves the program",
        "A branch to a register led to an address where no instruction can be (not a multiple of 8 "
        "bytes from the program's entry), or the code reached is longer than the 131,072 "
        "instructions that vc4lab follows.",
        "AG100-R p. 34, branch instruction",
        "Check how the register got its value: absolute branches need a QPU address, relative ones "
        "count from the end of the three delay slots.",
    ),
    Entry(
        "QPU-043",
        "Branches overlap too much",
        "Branches in each other's delay slots lead to more combinations than the compiler follows. "
        "The program runs in the interpreter.",
        "AG100-R p. 34: no branch in the delay slots of another",
        "Keep three other instructions between branches if speed matters.",
    ),
    Entry(
        "QPU-044",
        "Register branch in a large program",
        "A branch to a register can lead anywhere. Where targets cannot be learned at run time, "
        "the compiler follows such branches in small programs only. The program runs in the "
        "interpreter.",
        "AG100-R p. 34, branch instruction",
        "None needed. If speed matters, use branches to labels.",
    ),
    Entry(
        "QPU-045",
        "Program too long to compile",
        "The shader has more instructions than the compiler takes at once; real shaders have "
        "hundreds. A code address that points to data is a common cause. (User programs are "
        "compiled in parts, whatever their length.)",
        "vc4lab's own limit",
        "Check the code address in the shader record.",
    ),
    Entry(
        "QPU-046",
        "Requests depend on a branch",
        "Two paths meet in the program after reading different numbers of varyings, or with "
        "different texture requests in flight. The chip just continues with its queues; compiled "
        "code cannot, so the program runs in the interpreter.",
        "hardware reference 4.14, 4.15",
        "If speed matters, read varyings before the first branch, and a texture's result in the "
        "basic block of its request, as drivers do.",
    ),
    Entry(
        "QPU-047",
        "Execution reached zeroed memory",
        "Execution went past the program's last instruction, or a branch led to memory without "
        "code, and met words of 0. To the hardware these are breakpoints: the QPU stops there "
        "forever.",
        "AG100-R p. 29, signalling bits: 0 is a breakpoint",
        "End every path through the program with `nop; nop; thrend` and two more instructions; "
        "count branch targets from after the three delay slots; copy the whole program.",
    ),
    *COMPUTE_ENTRIES,
    *LINT_ENTRIES,
]
