"""Python's statements made stageable: the AST rewriting of @kernel and @staged.

`if`, `while`, `for`, `break`, `continue`, `return`, `and`/`or`/`not`, `a if c else b` and chained
comparisons become calls into `control`, which do what Python does for plain values and write native
control flow for staged ones. Each body appears once, in place and on its own line numbers:

    if c: A                      b = If(c, ("x",), (x,))
    else: B                      if b.then: A; b.end((x,))
                          →      if b.otherwise: x, = b.begin_else((x,)); B; b.end((x,))
                                 x, = b.merge((x,))

A statement that jumps (`return`, `break`, `continue`) records it and makes the place dead; the
statements after a compound one that may jump are wrapped in `if alive():`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from types import CellType, CodeType, FunctionType

from vc4lab.interruption import deferred
from vc4lab.simd.syntax import (
    JUMPS,
    State,
    assign_to,
    bound,
    call_of,
    field_of,
    jumps,
    locate,
    read_name,
    scope,
    syntax_of,
    thunk,
)

RUNTIME = "_vc4_rt"


class _Function(ast.NodeTransformer):
    """Rewrites one function; nested plain functions get a rewriter of their own."""

    def __init__(self) -> None:
        self.count = 0
        self.loops: list[tuple[str, State]] = []
        self.local: set[str] = set()
        self.merged: dict[str, None] = {}

    def function(self, node: ast.FunctionDef) -> ast.FunctionDef:
        arguments = node.args
        parameters = [a.arg for a in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
        parameters += [a.arg for a in (arguments.vararg, arguments.kwarg) if a]
        outside = {
            name for n in scope(node.body) if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names
        }
        self.local = (set(parameters) | set(bound(node.body))) - outside
        body = self.block(node.body)
        start: list[ast.stmt] = [assign_to("_vc4_f", call_of(f"{RUNTIME}.CallFrame"))]
        for name in self.merged:
            if name not in parameters:
                start.append(assign_to(name, call_of(f"{RUNTIME}.Unbound", ast.Constant(name))))
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            argument.annotation = None
        node.returns = None
        node.body = [
            *(locate(s, node) for s in start),
            *body,
            locate(ast.Return(call_of("_vc4_f.finish")), node),
        ]
        return node

    # -- statements
    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for index, statement in enumerate(statements):
            result += self.statement(statement)
            if isinstance(statement, JUMPS):
                break
            rest = statements[index + 1 :]
            compound = isinstance(statement, ast.If | ast.While | ast.For | ast.With | ast.Try | ast.Match)
            if rest and compound and jumps([statement]):
                guard = ast.If(call_of(f"{RUNTIME}.alive"), self.block(rest), [])
                result.append(locate(guard, rest[0]))
                break
        return result

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.If):
            return self.if_(node)
        if isinstance(node, ast.While):
            return self.while_(node)
        if isinstance(node, ast.For):
            return self.for_(node)
        if isinstance(node, ast.Return):
            args = [self.visit(node.value)] if node.value else []
            return [locate(ast.Expr(call_of("_vc4_f.return_", *args)), node)]
        if isinstance(node, ast.Break | ast.Continue):
            name, state = self.loops[-1]
            method = "break_" if isinstance(node, ast.Break) else "continue_"
            return [locate(ast.Expr(call_of(f"{name}.{method}", state.load())), node)]
        if isinstance(node, ast.With | ast.Try | ast.Match):
            return [self.container(node)]
        if isinstance(node, ast.FunctionDef):
            has_yield = any(isinstance(n, ast.Yield | ast.YieldFrom) for n in scope(node.body))
            if not node.decorator_list and not has_yield:
                return [_Function().function(node)]
            return [node]
        if isinstance(node, ast.ClassDef):
            return [node]
        return [self.visit(node)]

    def container(self, node: ast.With | ast.Try | ast.Match) -> ast.stmt:
        """Statements that stay Python, with rewritten bodies."""
        for child in ast.walk(node) if isinstance(node, ast.Match) else [node]:
            for field in ("body", "orelse", "finalbody"):
                body = getattr(child, field, None)
                if isinstance(body, list) and body and child in (node, *getattr(node, "cases", [])):
                    setattr(child, field, self.block(body))
        if isinstance(node, ast.With):
            for item in node.items:
                item.context_expr = self.visit(item.context_expr)
        if isinstance(node, ast.Try):
            for handler in node.handlers:
                handler.body = self.block(handler.body)
        return node

    def _state(self, *bodies: Sequence[ast.AST]) -> State:
        state = State([n for body in bodies for n in body], self.local)
        self.merged.update(dict.fromkeys(state.names))
        return state

    def _fresh(self, kind: str) -> str:
        self.count += 1
        return f"_vc4_{kind}{self.count}"

    def if_(self, node: ast.If) -> list[ast.stmt]:
        state = self._state(node.body, node.orelse)
        name = self._fresh("b")
        test = self.visit(node.test)
        end = ast.Expr(call_of(f"{name}.end", state.load()))
        then = [*self.block(node.body), end]
        other = [
            state.store(call_of(f"{name}.begin_else", state.load())),
            *self.block(node.orelse),
            ast.Expr(call_of(f"{name}.end", state.load())),
        ]
        made: list[ast.stmt] = [
            assign_to(name, call_of(f"{RUNTIME}.If", test, state.labels(), state.load())),
            ast.If(field_of(name, "then"), then, []),
            ast.If(field_of(name, "otherwise"), other, []),
            state.store(call_of(f"{name}.merge", state.load())),
        ]
        return [locate(s, node) for s in made]

    def _loop(
        self, node: ast.While | ast.For, name: str, state: State, top: list[ast.stmt], start: ast.stmt
    ) -> list[ast.stmt]:
        if node.orelse:
            raise SyntaxError(f"line {node.lineno}: a loop in a kernel cannot have an else")
        self.loops.append((name, state))
        body = self.block(node.body)
        self.loops.pop()
        turn = [
            *top,
            *body,
            state.store(call_of(f"{name}.next", state.load())),
            ast.If(field_of(name, "done"), [ast.Break()], []),
        ]
        made: list[ast.stmt] = [
            start,
            ast.While(ast.Constant(True), turn, []),
            state.store(call_of(f"{name}.end", state.load())),
        ]
        return [locate(s, node) for s in made]

    def while_(self, node: ast.While) -> list[ast.stmt]:
        state = self._state([node.test], node.body)
        name, test = self._fresh("l"), self._fresh("t")
        forever = isinstance(node.test, ast.Constant) and bool(node.test.value)
        again = ast.parse(ast.unparse(node.test), mode="eval").body
        for inner in ast.walk(again):
            if hasattr(inner, "lineno"):
                ast.copy_location(inner, node.test)
        walrus = [n for n in bound([node.test]) if n in state.names]
        keep = [assign_to(f"_vc4_keep_{n}", read_name(n)) for n in walrus]
        undo = [assign_to(n, read_name(f"_vc4_keep_{n}")) for n in walrus]
        top: list[ast.stmt] = [
            *keep,
            ast.Expr(call_of(f"{name}.mark")),
            assign_to(test, self.visit(node.test)),
            ast.If(
                call_of(f"{name}.is_staged", read_name(test)),
                [
                    *undo,
                    state.store(call_of(f"{name}.header", state.load())),
                    assign_to(test, self.visit(again)),
                ],
                [],
            ),
            ast.If(
                ast.UnaryOp(ast.Not(), call_of(f"{name}.turn", read_name(test), state.load())),
                [ast.Break()],
                [],
            ),
        ]
        carried = state.carried(node.test, node.body, [])
        make = call_of(f"{RUNTIME}.While", state.labels(), carried, ast.Constant(forever))
        start = assign_to(name, make)
        return self._loop(node, name, state, top, start)

    def for_(self, node: ast.For) -> list[ast.stmt]:
        state = self._state([node.target], node.body)
        name = self._fresh("l")
        iterable = node.iter
        if (
            isinstance(iterable, ast.Call)
            and isinstance(iterable.func, ast.Name)
            and iterable.func.id == "range"
            and not iterable.keywords
        ):
            args = [self.visit(a) for a in iterable.args]
            iterable = call_of(f"{RUNTIME}.range_", iterable.func, *args)
        else:
            iterable = self.visit(iterable)
        top: list[ast.stmt] = [
            ast.If(field_of(name, "staged"), [state.store(call_of(f"{name}.header", state.load()))], []),
            ast.If(ast.UnaryOp(ast.Not(), call_of(f"{name}.turn")), [ast.Break()], []),
            ast.Assign([node.target], field_of(name, "item")),
        ]
        carried = state.carried(None, node.body, bound([node.target]))
        start = assign_to(name, call_of(f"{RUNTIME}.For", iterable, state.labels(), carried))
        return self._loop(node, name, state, top, start)

    # -- expressions
    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        test, yes, no = (self.visit(n) for n in (node.test, node.body, node.orelse))
        made = call_of(f"{RUNTIME}.ternary", test, thunk(yes), thunk(no))
        return locate(made, node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        function = "and_" if isinstance(node.op, ast.And) else "or_"
        values: list[ast.expr] = [self.visit(v) for v in node.values]
        result = values[-1]
        for value in reversed(values[:-1]):
            result = call_of(f"{RUNTIME}.{function}", value, thunk(result))
        return locate(result, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        node.operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return locate(call_of(f"{RUNTIME}.not_", node.operand), node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        ops = ast.Tuple([ast.Constant(type(o).__name__) for o in node.ops], ast.Load())
        made = call_of(f"{RUNTIME}.chain", ops, node.left, *node.comparators)
        return locate(made, node)


_codes: dict[CodeType, CodeType] = {}


def _rewritten_code(function: FunctionType) -> CodeType:
    """The rewritten code object of `function`, made once."""
    known = _codes.get(function.__code__)
    if known is None:
        with deferred():  # Python's parser makes a SystemError of what a signal raises
            known = _codes[function.__code__] = _new_code(function)
    return known


def _new_code(function: FunctionType) -> CodeType:
    tree = syntax_of(function)
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise TypeError(f"{function.__qualname__}: only a plain def can be staged")
    if inspect.isgeneratorfunction(function):
        raise TypeError(f"{function.__qualname__}: a generator cannot be staged")
    definition.decorator_list = []
    nothing = locate(ast.Constant(None), definition)
    definition.args.defaults = [nothing for _ in definition.args.defaults]
    definition.args.kw_defaults = [d and nothing for d in definition.args.kw_defaults]
    definition = _Function().function(definition)
    names = [RUNTIME, *function.__code__.co_freevars]
    factory = ast.FunctionDef(
        name="_vc4_factory",
        args=ast.arguments(
            posonlyargs=[], args=[ast.arg(n) for n in names], kwonlyargs=[], kw_defaults=[], defaults=[]
        ),
        body=[definition, ast.Return(read_name(definition.name))],
        decorator_list=[],
    )
    if hasattr(factory, "type_params") or "type_params" in ast.FunctionDef._fields:
        factory.type_params = []  # type: ignore[attr-defined]
    module = ast.Module([locate(factory, definition)], [])
    outer = compile(module, function.__code__.co_filename, "exec")
    return _nested_code(_nested_code(outer, "_vc4_factory"), definition.name)


def _nested_code(code: CodeType, name: str) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)


def rewrite(function: FunctionType, runtime: object = None) -> FunctionType:
    """The stageable version of `function`, with the same globals, cells and defaults.

    runtime: what its statements call (`If`, `While`, `For` and so on); None: `control`, which writes
    native code.
    """
    if runtime is None:
        from vc4lab.simd import control as runtime

    code = _rewritten_code(function)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[RUNTIME] = CellType(runtime)
    closure = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    return made
