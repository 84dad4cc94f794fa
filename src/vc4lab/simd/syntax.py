"""Syntax trees: that of a function, pieces to build others, the variables a statement changes or reads."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Sequence
from types import FunctionType
from typing import Any, TypeVar

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
JUMPS = (ast.Return, ast.Break, ast.Continue)


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below, contexts (Load, Store) left out: this runs for every node often."""
    found: list[ast.AST] = []
    members = node.__dict__
    for name in node._fields:
        value = members.get(name)
        if value.__class__ is list:
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST) and name != "ctx":
            found.append(value)
    return found


def scope(nodes: Sequence[ast.AST]) -> list[ast.AST]:
    """Every node of this function's own scope (not inside nested functions), in textual order."""
    found: list[ast.AST] = []
    todo = list(reversed(nodes))
    while todo:
        node = todo.pop()
        found.append(node)
        if not isinstance(node, _FUNCTIONS):
            below = children(node)
            below.reverse()
            todo += below
    return found


_SUMMARY = "_vc4_summary"
_Summary = tuple[dict[str, None], dict[str, ast.expr], bool]


def _summary(node: ast.AST) -> _Summary:
    """Names bound in here, roots of items that are assigned, and whether something jumps.

    Statements are nested and each needs the summary of all below it, so it is computed once and
    kept in the node, before anything is rewritten.
    """
    known: _Summary | None = node.__dict__.get(_SUMMARY)
    if known is not None:
        return known
    names: dict[str, None] = {}
    roots: dict[str, ast.expr] = {}
    jump = isinstance(node, JUMPS)
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Store):
            names[node.id] = None
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        names[node.name] = None
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            names[alias.asname or alias.name.partition(".")[0]] = None
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        names[node.name] = None
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        root = _root(node)
        if root is not None:
            roots[ast.unparse(root)] = root
    if not isinstance(node, _FUNCTIONS):
        for child in children(node):
            below = _summary(child)
            # what a comprehension assigns is its own
            if not (isinstance(node, ast.comprehension) and child is node.target):
                names.update(below[0])
            roots.update(below[1])
            jump = jump or below[2]
    found = node.__dict__[_SUMMARY] = names, roots, jump
    return found


def _root(node: ast.Subscript) -> ast.expr | None:
    """The `x` of `x[i]`, if it is a name or a chain of attributes of one."""
    root: ast.expr = node
    while isinstance(root, ast.Subscript):
        root = root.value
    inner = root
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    return root if isinstance(inner, ast.Name) else None


def jumps(nodes: Sequence[ast.AST]) -> bool:
    """Is there a return, break or continue anywhere in here?"""
    return any(_summary(node)[2] for node in nodes)


def bound(nodes: Sequence[ast.AST]) -> list[str]:
    """Names that these statements assign, in order of first appearance."""
    names: dict[str, None] = {}
    for node in nodes:
        names.update(_summary(node)[0])
    return list(names)


def item_roots(nodes: Sequence[ast.AST]) -> list[ast.expr]:
    """The `x` of every `x[i] = …`, where x is a name or a chain of attributes of one."""
    roots: dict[str, ast.expr] = {}
    for node in nodes:
        roots.update(_summary(node)[1])
    return list(roots.values())


def _loads(node: ast.AST | None) -> set[str]:
    if node is None:
        return set()
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def exposed(statements: Sequence[ast.stmt], assigned: set[str] | None = None) -> set[str]:
    """Names that may be read in here before these statements have assigned them.

    In a loop body these are the variables whose value comes from the turn before.
    """
    found: set[str] = set()
    _flow(statements, set(assigned or ()), found)
    return found


def _flow(statements: Sequence[ast.stmt], known: set[str], found: set[str]) -> set[str] | None:
    """Adds to `found`; returns the names surely assigned afterwards, None if never reached."""
    for node in statements:
        if isinstance(node, ast.If):
            found |= _loads(node.test) - known
            ends = [_flow(node.body, set(known), found), _flow(node.orelse, set(known), found)]
            reached = [e for e in ends if e is not None]
            if not reached:
                return None
            known = set.intersection(*reached)
        elif isinstance(node, ast.While):
            found |= _loads(node.test) - known
            _flow(node.body, set(known), found)
        elif isinstance(node, ast.For):
            found |= _loads(node.iter) - known
            _flow(node.body, known | set(bound([node.target])), found)
        elif isinstance(node, ast.With):
            for item in node.items:
                found |= _loads(item.context_expr) - known
                if item.optional_vars:
                    known |= set(bound([item.optional_vars]))
            inner = _flow(node.body, known, found)
            if inner is None:
                return None
            known = inner
        elif isinstance(node, ast.Try | ast.Match):
            found |= _loads(node) - known
        else:
            found |= _loads(node) - known
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                found |= {node.target.id} - known
            known |= set(bound([node]))
            if isinstance(node, JUMPS):
                return None
    return known


_DISCARD = "_vc4_discard"
_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")
_LOCATED = (ast.expr, ast.stmt, ast.arg)
Tree = TypeVar("Tree")


def syntax_of(function: FunctionType) -> ast.Module:
    """A module with the function's definition; its nodes have their places in the file.

    Raises TypeError if there is no source.
    """
    code = function.__code__
    start = code.co_firstlineno - 1
    lines = _definition(linecache.getlines(code.co_filename, function.__globals__), start)
    try:
        return _parse(lines, start)
    except SyntaxError:
        pass  # lines of a text that begin further left, say
    try:
        lines, first = inspect.getsourcelines(function)
    except OSError as error:
        raise TypeError(f"the source of {function.__qualname__} is needed, and there is none") from error
    return _parse(lines, first - 1)


def _parse(lines: list[str], before: int) -> ast.Module:
    if not lines:
        raise SyntaxError("no lines")
    return ast.parse("\n" * before + textwrap.dedent("".join(lines)))


def _definition(lines: list[str], start: int) -> list[str]:
    """The lines from `start` to the end of the first definition, by their indentation.

    `inspect` finds the end with Python's tokenizer, which takes longer than all else that is done
    with the source.
    """
    margin = -1
    for number in range(start, len(lines)):
        line = lines[number]
        text = line.lstrip()
        if not text or text[0] == "#":
            continue
        if margin < 0:
            if text.startswith("def "):
                margin = len(line) - len(text)
        elif len(line) - len(text) <= margin and text[0] not in ")]}":
            return lines[start:number]
    return lines[start:]


def locate(tree: Tree, at: ast.AST) -> Tree:
    """Gives every generated node the place where `at` begins; what has one is not entered again.

    The beginning only: Python reports parts of a node of several lines at its last one, and a
    debugger would jump there and back.
    """
    line, column = getattr(at, "lineno", None), getattr(at, "col_offset", None)
    place = dict(zip(_PLACE, (line, column, line, column), strict=True))
    todo: list[Any] = [tree]
    while todo:
        node = todo.pop()
        if "lineno" in node.__dict__:
            continue
        if isinstance(node, _LOCATED):
            node.__dict__.update(place)
        todo += children(node)
    return tree


def read_name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def call_of(target: str, *args: ast.expr) -> ast.Call:
    """A call of `a.b` with these arguments."""
    base, _, attribute = target.partition(".")
    function: ast.expr = read_name(base)
    if attribute:
        function = ast.Attribute(function, attribute, ast.Load())
    return ast.Call(function, list(args), [])


def field_of(name: str, attribute: str) -> ast.expr:
    return ast.Attribute(read_name(name), attribute, ast.Load())


def assign_to(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def thunk(body: ast.expr) -> ast.Lambda:
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(empty, body)


class State:
    """The variables that a compound statement changes, as expressions and as targets."""

    def __init__(self, body: Sequence[ast.AST], local: set[str]) -> None:
        self.names = [n for n in bound(body) if n in local]
        self.extra = [r for r in item_roots(body) if not (isinstance(r, ast.Name) and r.id in self.names)]

    def load(self) -> ast.expr:
        reads: list[ast.expr] = [read_name(n) for n in self.names]
        reads += [ast.parse(ast.unparse(r), mode="eval").body for r in self.extra]
        for read in reads:
            for node in ast.walk(read):
                for attribute in ("lineno", "end_lineno", "col_offset", "end_col_offset"):
                    node.__dict__.pop(attribute, None)
        return ast.Tuple(reads, ast.Load())

    def labels(self) -> ast.expr:
        texts = [*self.names, *(ast.unparse(r) for r in self.extra)]
        return ast.Tuple([ast.Constant(t) for t in texts], ast.Load())

    def carried(self, test: ast.expr | None, body: list[ast.stmt], target: list[str]) -> ast.expr:
        """The labels of what a turn of this loop takes over from the turn before."""
        first: list[ast.stmt] = [ast.Expr(test)] if test else []
        read = exposed([*first, *body], set(target))
        texts = [n for n in self.names if n in read] + [ast.unparse(r) for r in self.extra]
        return ast.Tuple([ast.Constant(t) for t in texts], ast.Load())

    def store(self, value: ast.expr) -> ast.stmt:
        targets = [*self.names, *(_DISCARD for _ in self.extra)]
        if not targets:
            return ast.Expr(value)
        return ast.Assign([ast.Tuple([ast.Name(t, ast.Store()) for t in targets], ast.Store())], value)
