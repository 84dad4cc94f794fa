"""Instructions of vc4asm's dialect: operations between semicolons, each given to a draft."""

from __future__ import annotations

from collections.abc import Callable

from vc4lab.qpu.dialects.vc4asm.expressions import Expressions
from vc4lab.qpu.dialects.vc4asm.instruction.draft import Draft
from vc4lab.qpu.dialects.vc4asm.instruction.fields import ADD, UNUSED, Role
from vc4lab.qpu.dialects.vc4asm.names import (
    ADD_OPERATIONS,
    BRANCH_CONDITIONS,
    BRANCHES,
    CONDITIONS,
    FIXED_ALU,
    LOADS,
    MOVES,
    MUL_OPERATIONS,
    OPERATIONS,
    SIGNALS,
    TARGET_CONDITIONS,
    packing_of,
    suffixes,
)
from vc4lab.qpu.dialects.vc4asm.tokens import NUMBER, WORD, Cursor, Token, shown
from vc4lab.qpu.dialects.vc4asm.values import Label, Register, Value
from vc4lab.qpu.isa.operations import BranchCondition, LoadMode
from vc4lab.qpu.text.syntax import Mistake, unknown


class Statements:
    """Writes operations into a draft."""

    def __init__(self, expressions: Expressions, macros: Callable[[], list[str]]) -> None:
        self.expressions = expressions
        self.macros = macros

    def write(self, cursor: Cursor, draft: Draft, address: int) -> bool:
        """All operations of a line. Whether it is a branch after which other code may follow."""
        draft.joins_next = False
        branches = False
        while True:
            token = cursor.token
            if token.kind != WORD or token.text not in OPERATIONS:
                known = [*OPERATIONS, *self.macros()]
                if token.kind == WORD:
                    raise unknown("operation or macro", token.text, known, token.column)
                raise Mistake(f"expected an operation, found {shown(token)}", token.column)
            cursor.take()
            branches |= self.operation(token, cursor, draft, address)
            draft.finish_operation()
            if cursor.accept(";"):
                if cursor.at_end:
                    draft.joins_next = True
                    return branches
                continue
            cursor.finish()
            return branches

    def operation(self, token: Token, cursor: Cursor, draft: Draft, address: int) -> bool:
        """One operation; whether it is a branch that may return or fall through."""
        name = token.text
        if name in BRANCHES:
            return self.branch(token, cursor, draft, address)
        if name in SIGNALS:
            draft.take_signal(SIGNALS[name], token.column)
        elif name == "read":
            draft.begin(ADD, token.column)
            draft.role = Role.SOURCES
            draft.read(self.value(cursor, draft))
        elif name in MOVES or name in LOADS:
            self.move(token, cursor, draft)
        else:
            self.arithmetic(token, cursor, draft)
        return False

    # Operands ---------------------------------------------------------------------------------

    def value(self, cursor: Cursor, draft: Draft) -> Value:
        draft.column = cursor.column
        return self.expressions.read(cursor)

    def source(self, cursor: Cursor, draft: Draft, role: Role) -> None:
        draft.role = role
        draft.source(self.value(cursor, draft))

    def target(self, cursor: Cursor, draft: Draft) -> None:
        draft.role, draft.column = Role.TARGET, cursor.column
        draft.target(self.expressions.read(cursor, lambda token: self.of_target(token, draft)))

    def of_target(self, token: Token, draft: Draft) -> bool:
        """A condition or `.setf` after a destination."""
        if token.text in ("setf", "sf"):
            draft.set_flags()
        elif token.text in TARGET_CONDITIONS:
            draft.set_condition(TARGET_CONDITIONS[token.text])
        else:
            return False
        return True

    def comma(self, cursor: Cursor) -> None:
        cursor.expect(",", "between operands")

    def suffixed(self, cursor: Cursor, draft: Draft) -> None:
        """The suffixes after an operation's name."""
        while cursor.accept("."):
            token = cursor.token
            if token.kind not in (WORD, NUMBER):
                raise Mistake(f"expected a suffix, found {shown(token)}", token.column)
            cursor.take()
            draft.column = token.column
            name = token.text
            packing = packing_of(name) if "pack" in name else None
            if name in ("setf", "sf"):
                draft.set_flags()
            elif name in CONDITIONS:
                draft.set_condition(CONDITIONS[name])
            elif name in BRANCH_CONDITIONS:
                draft.set_branch_condition(BRANCH_CONDITIONS[name])
            elif name == "rot":
                self.rotation(cursor, draft)
            elif packing is not None:
                draft.packing(packing)
            else:
                raise unknown("suffix", name, suffixes(), token.column)

    def rotation(self, cursor: Cursor, draft: Draft) -> None:
        """`.rot 3,`: as `>> 3` of the sources."""
        value = self.value(cursor, draft)
        self.comma(cursor)
        if isinstance(value, int):
            draft.rotate(value & 15)
        elif not (isinstance(value, Register) and value.number == 37):
            raise Mistake("a rotation is r5 or a number", draft.column)

    # Operations ---------------------------------------------------------------------------------

    def arithmetic(self, token: Token, cursor: Cursor, draft: Draft) -> None:
        name = token.text
        fixed = name in FIXED_ALU
        if name in ADD_OPERATIONS:
            count = draft.add_operation(int(ADD_OPERATIONS[name]), fixed, token.column)
        else:
            count = draft.mul_operation(int(MUL_OPERATIONS[name]), fixed, token.column)
        self.suffixed(cursor, draft)
        if not count:
            draft.has_nop = True
            if not cursor.at_end and cursor.token.text != ";":
                self.target(cursor, draft)
            return
        self.target(cursor, draft)
        self.comma(cursor)
        self.source(cursor, draft, Role.FIRST)
        if count == 2:
            self.comma(cursor)
            self.source(cursor, draft, Role.SECOND)

    def move(self, token: Token, cursor: Cursor, draft: Draft) -> None:
        name = token.text
        targets = 2 if arguments(cursor) == 3 else 1
        draft.begin_move(name if name in MOVES else "ldi", targets, token.column)
        self.suffixed(cursor, draft)
        self.target(cursor, draft)
        self.comma(cursor)
        if targets == 2:
            draft.alu = 1 - draft.alu
            self.target(cursor, draft)
            self.comma(cursor)
            draft.both = True
        draft.role = Role.SOURCES
        value = self.value(cursor, draft)
        if name in LOADS:
            draft.load(value, LOADS[name], name == "sacq")
        elif not draft.move(value):
            draft.load(value, LoadMode.WORD, False)

    def branch(self, token: Token, cursor: Cursor, draft: Draft, address: int) -> bool:
        draft.begin_branch(bool(BRANCHES[token.text]), token.column)
        self.suffixed(cursor, draft)
        count = arguments(cursor)
        draft.alu = ADD
        links = 0
        while links < (2 if count > 3 else min(count - 1, 1)):
            draft.alu = links
            self.target(cursor, draft)
            self.comma(cursor)
            links += 1
        draft.alu, draft.role = ADD, Role.SOURCES
        while True:
            value = self.value(cursor, draft)
            if token.text == "bra" and isinstance(value, Label):
                text = "an absolute branch to a label works only where the program is assembled for"
                draft.notes.append((text, draft.column))
            draft.branch_source(value, address)
            if not cursor.accept(","):
                break
        linked = draft.waddr != [UNUSED, UNUSED] and (draft.immediate or draft.by_register)
        return draft.condition != BranchCondition.ALWAYS or bool(linked)


def arguments(cursor: Cursor) -> int:
    """How many arguments are left in this operation."""
    count, depth = 1, 0
    for token in cursor.tokens[cursor.index :]:
        if token.text in ("(", "["):
            depth += 1
        elif token.text in (")", "]"):
            depth -= 1
        elif depth == 0 and token.text == ",":
            count += 1
        elif depth == 0 and token.text == ";":
            break
    return count
