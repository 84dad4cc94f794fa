"""Messages of the QPU lint: rules that the hardware has and the assembler cannot enforce."""

from vc4lab.diagnostics.entry import Entry, Severity

_GUIDE = "AG100-R pp. 37-38, QPU instruction restrictions"

LINT_ENTRIES = [
    Entry(
        "QPU-101",
        "Register read right after its write",
        "A physical register (ra0-ra31, rb0-rb31) is read by the instruction after the one that "
        "writes it. That read still returns the old value.",
        _GUIDE,
        "Put another instruction between them, or use an accumulator (r0-r3).",
        Severity.WARNING,
    ),
    Entry(
        "QPU-102",
        "r4 used while the SFU computes",
        "The result of a write to recip, recipsqrt, exp or log reaches r4 three instructions "
        "later. The two instructions in between must neither read r4 nor start another write to "
        "it.",
        _GUIDE,
        "Put two instructions in between that do not use r4.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "QPU-103",
        "Both ALUs write the same destination",
        "The add and the mul ALU write the same accumulator or peripheral in one instruction. "
        "Which of the results remains is undefined.",
        "AG100-R p. 29, write addresses",
        "Split the instruction, or give one result another destination.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "QPU-104",
        "Varying, uniform or VPM access at the program's end",
        "The instruction with the program-end signal and the two after it must not read varyings "
        "or uniforms, or use the VPM: the next program may already have started.",
        _GUIDE,
        "Move the access before thrend.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "QPU-105",
        "Register written at the program's end",
        "The program-end instruction must not write a physical register, and none of the last "
        "three instructions may use register 14: the hardware writes the next program's inputs "
        "there.",
        _GUIDE,
        "Move the access before thrend.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "QPU-107",
        "Tile buffer access in the first two instructions",
        "A scoreboard wait, explicit (sbwait) or implied by the first tile buffer access, must not "
        "be in the first two instructions: the program may draw into the previous tile (HW-2796). "
        "Some programs do this and run on boards.",
        _GUIDE,
        "Put two other instructions in front.",
        Severity.HINT,
    ),
    Entry(
        "QPU-108",
        "Rotation right after a write",
        "A rotation must not directly follow a write of the accumulator that it rotates, nor a "
        "rotation by r5 a write of r5.",
        _GUIDE,
        "Put another instruction between them.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "QPU-109",
        "Two peripheral accesses in one instruction",
        "An instruction has room for only one of: TMU write, TMU load, tile buffer write or load "
        "(a colour load may accompany a colour write), SFU write, mutex, semaphore.",
        _GUIDE,
        "Split the instruction.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "QPU-110",
        "Uniform read too soon after unif_addr",
        "At least two instructions without uniforms must follow a write of the uniform address; "
        "earlier reads still come from the old address.",
        _GUIDE,
        "Put two other instructions between them.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "QPU-111",
        "Uniform read together with a texture write",
        "Each TMU write of a texture request consumes a uniform by itself, so the same instruction "
        "cannot read one.",
        _GUIDE,
        "Split the instruction.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-112",
        "Branch in a delay slot",
        "The three instructions after a branch are always executed; none of them may be another branch.",
        "AG100-R p. 34; Linux vc4 validator",
        "Fill the delay slots with other instructions or nop.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-113",
        "Thread switches too close together",
        "Thread switch signals must be at least three instructions apart.",
        "Mesa vc4, instruction scheduler",
        "Put other instructions between them.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-114",
        "Conditional write to the TMU or the VPM",
        "A write to t0s, t1s or vpm happens in all lanes whatever its condition; lanes whose "
        "condition fails send undefined data.",
        "vc4asm addendum (measured)",
        "Select the value with conditional moves into an accumulator, then write all lanes.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-115",
        "tmurs too close to a TMU write",
        "The automatic swap of the two TMUs must be switched off at least three instructions "
        "before the first TMU write.",
        _GUIDE,
        "Move the write of tmurs to an earlier instruction.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "QPU-116",
        ".setf on an operation that is never executed",
        "The add operation's condition is never, so no lane's flags change. The mul result sets "
        "flags only if the add operation is nop.",
        "AG100-R p. 28 and vc4asm (measured)",
        "Use nop for the add operation, or remove the condition.",
        Severity.HINT,
    ),
    Entry(
        "QPU-117",
        "Byte pack to a peripheral",
        "The mul ALU's byte packs (.8a and so on) merge with the destination's old bytes, so they "
        "work for registers only.",
        "vc4asm addendum (measured)",
        "Pack into an accumulator first.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-119",
        "tlbz at the program's end",
        "The last instruction must not write the depth, and the sample flags must not be read "
        "within two instructions after a depth write.",
        _GUIDE,
        "Move the write to an earlier instruction.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "QPU-120",
        "One stream read through both files",
        "One instruction reads a varying, a uniform or the VPM through file A and file B. That "
        "consumes one word, not two.",
        "Linux vc4 validator counts one",
        "Read twice, in two instructions.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-121",
        "Program without its end",
        "The program runs past its last instruction, or has no program end (thrend). The hardware "
        "executes whatever follows in memory; zeroed memory is a breakpoint, at which the QPU "
        "stops forever.",
        "AG100-R p. 29: program end takes effect after two delay slots; p. 34: branches have three",
        "End every path through the program with `nop; nop; thrend` and two more instructions, and "
        "put three instructions after a branch.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-122",
        "Instruction without effect at the program's end",
        "The program ends two instructions after thrend: a branch or thread switch there has no "
        "effect, and nothing reads the result of a request to the texture unit or the SFU.",
        "AG100-R p. 29, program end",
        "Move it before thrend, or remove it.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-123",
        "Value lost at a thread switch",
        "A thread switch (thrsw, lthrsw) takes effect after two delay slots. The other thread then "
        "uses the accumulators and flags, so r0 to r3, Z, N and C are lost.",
        "AG100-R p. 20, threads; Mesa vc4 keeps nothing in accumulators across a switch",
        "Keep values in ra0-ra15 and rb0-rb15 across the switch, and set the flags again after it.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "QPU-124",
        "Rotation within quads only",
        "A rotation covers all 16 lanes only if every operand of the mul operation is one of r0 to "
        "r3. With a register of a file, r4 or r5, the lanes of each quad rotate among themselves.",
        "py-videocore's tests (measured)",
        "Move the value to r0-r3 first and rotate it in a later instruction. Ignore this if you "
        "want rotation within quads.",
        Severity.HINT,
    ),
    Entry(
        "QPU-125",
        "Branch in the last delay slot",
        "A branch is in the third delay slot of another. The chip executes both, but Linux refuses "
        "such shaders.",
        "Linux vc4 validator; hardware reference 4.12 (measured)",
        "If the shader is to run under Linux, put another instruction between them.",
        Severity.HINT,
    ),
    Entry(
        "QPU-126",
        "Program end in a branch's delay slot",
        "The three instructions after a branch are executed whether or not it is taken. With "
        "thrend among them, the program ends in both cases.",
        "AG100-R p. 34, branch; p. 29, program end",
        "Put three instructions (nop if there is nothing to do) between the branch and thrend.",
        Severity.WARNING,
    ),
    Entry(
        "QPU-127",
        "VPM access together with a texture result",
        "One instruction accesses the VPM and takes a texture unit's result (ldtmu0, ldtmu1). On "
        "the chip one of the two goes wrong.",
        "vc4asm addendum (measured)",
        "Split the instruction.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "QPU-128",
        "Tile buffer access after the scoreboard is released",
        "The program reads or writes the tile buffer after sbdone. Another program that covers the "
        "same pixels may go on from there, so the order of the two is a race on a board. vc4lab "
        "runs fragment programs in the order of their primitives.",
        "AG100-R p. 51, scoreboard; p. 29, signal 5",
        "Put sbdone after the last access, best into the last instruction of the program. The end "
        "of a program releases the scoreboard, too, so sbdone may be missing.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "QPU-129",
        "Thread switch while the scoreboard is held",
        "The program has waited for the scoreboard, or accessed the tile buffer, before a thread "
        "switch. The other thread of the QPU may wait for the same pixels: both wait forever. "
        "vc4lab runs one after the other.",
        "AG100-R p. 51, scoreboard; Mesa vc4, instruction scheduler",
        "Access the tile buffer only after the last thread switch (signal 6).",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "QPU-130",
        "Scoreboard wait in the program-end instruction",
        "The first access to the tile buffer is in the instruction with thrend, so the program "
        "would have to wait for the scoreboard while it ends, which a program end cannot do. What "
        "a board draws then is not documented; vc4lab draws in order.",
        "Mesa vc4, vc4_qpu_validate.c: no implicit scoreboard wait in the program end",
        "Put sbwait into an earlier instruction, but not into the first two.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
    Entry(
        "QPU-131",
        "Register read before it is written",
        "The program reads an accumulator, a register or the flags before any of its instructions has "
        "written there, on the way on which no conditional branch is taken. On the chip they have what "
        "the program before left there, another one each time; vc4lab starts with zeros. Only ra15 and "
        "rb15 of fragment programs (W and Z) and r5 after a varying have a value of the chip's. A total "
        "that a loop adds to without having begun with 0 is the usual case.",
        "hardware reference 4.1, initial register contents",
        "Write it first, such as `mov r0, 0` before the loop; `.setf` before the condition.",
        Severity.WARNING,
        fails_on_boards=True,
    ),
]
