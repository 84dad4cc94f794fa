"""@kernel and @staged: Python functions that are traced into native code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from types import FunctionType
from typing import Any, Generic, TypeVar, cast, overload

from vc4lab.simd.operators import Operand
from vc4lab.simd.trace import ModuleTrace, current, function_trace, staged_error, tracing
from vc4lab.simd.types import Type, i1
from vc4lab.simd.value import Value, coerce

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R", bound=Value | None)
Result = TypeVar("Result", bound=Value | None, covariant=True)


class Staged:
    """A function whose body is inlined wherever traced code calls it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if not isinstance(function, FunctionType):
            raise TypeError(f"@staged wants a plain function, not {function!r}")
        self.function = function
        self._staged: FunctionType | None = None
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not tracing():
            return self.function(*args, **kwargs)
        if self._staged is None:
            from vc4lab.simd.rewrite import rewrite  # late: a cached start never parses Python

            self._staged = rewrite(self.function)
        return self._staged(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def staged(function: F) -> F:
    """Makes a function usable on staged values with ordinary control flow; calls are inlined."""
    return cast("F", Staged(function))


class Function(Generic[Result]):
    """A native function to be: argument types, return type (or None) and the body to trace.

    `body` is called with one Value per argument; a plain callable is traced as it is, a `@staged`
    one may use control flow.
    """

    @overload
    def __init__(
        self: Function[Value],
        args: Sequence[Type],
        returns: Type,
        body: Callable[..., Any] | None = None,
        name: str = "",
    ) -> None: ...
    @overload
    def __init__(
        self: Function[None],
        args: Sequence[Type] = (),
        returns: None = None,
        body: Callable[..., Any] | None = None,
        name: str = "",
    ) -> None: ...
    def __init__(
        self,
        args: Sequence[Type] = (),
        returns: Type | None = None,
        body: Callable[..., Any] | None = None,
        name: str = "",
    ) -> None:
        self.args = tuple(args)
        self.returns = returns
        self.body = body
        self.name = name or getattr(body, "__name__", "function")

    def trace_body(self, values: Sequence[Value]) -> Any:
        assert self.body is not None
        return self.body(*values)

    def _convert(self, args: Sequence[Operand]) -> list[Value]:
        if len(args) != len(self.args):
            raise staged_error(f"{self.name} takes {len(self.args)} arguments, not {len(args)}")
        return [coerce(a, t) for a, t in zip(args, self.args, strict=True)]

    def __call__(self, *args: Operand) -> Result:
        """In traced code: inlines the body here."""
        if not tracing():
            raise RuntimeError(f"{self.name} is not compiled: pass it to build(), or call it there")
        result = self.trace_body(self._convert(args))
        return cast("Result", result if self.returns is None else coerce(result, self.returns))


@overload
def kernel(args: Sequence[Type], returns: Type) -> Callable[[F], Function[Value]]: ...
@overload
def kernel(args: Sequence[Type] = (), returns: None = None) -> Callable[[F], Function[None]]: ...
def kernel(args: Sequence[Type] = (), returns: Type | None = None) -> Any:
    """Declares a native function: `@kernel(args=(ptr, i32), returns=i32)`."""
    if callable(args):
        raise TypeError("write @kernel(args=(...), returns=...)")

    def make(function: Callable[..., Any]) -> Any:
        made = cast("Any", Function)(args, returns, Staged(function), function.__name__)
        return functools.update_wrapper(made, function)

    return make


def late_kernel(
    module: str, name: str, args: Sequence[Type], returns: Type | None = None, **options: Any
) -> Function[Any]:
    """A kernel of another Python module, which is imported when it is compiled, not before.

    `options` are arguments that are known at compile time.
    """

    def body(*values: Value) -> Any:
        return getattr(import_module(module), name)(*values, **options)

    made: Function[Any] = cast("Any", Function)(args, returns, body, name)
    return made


def define(module: ModuleTrace, function: Function[Any], name: str, exported: bool = False) -> None:
    """Traces `function` into `module` as the LLVM function @`name`."""
    with function_trace(module, name) as trace:
        values = [Value(t, f"%p{i}") for i, t in enumerate(function.args)]
        result = function.trace_body(values)
        if trace.block is not None:
            if function.returns is None:
                if result is not None:
                    raise TypeError(f"{function.name} returns a value but declares returns=None")
                trace.terminate("ret void")
            else:
                if result is None:
                    raise TypeError(f"{function.name} declares returns={function.returns}, returns None")
                value = coerce(result, function.returns)
                trace.terminate(f"ret {value.type.text} {value.text}")
        zero = " zeroext" if exported else ""  # C passes a bool as a whole byte
        parameters = ", ".join(
            f"{t.text}{zero if t is i1 else ''} %p{i}" for i, t in enumerate(function.args)
        )
        returns = function.returns.text if function.returns else "void"
        if function.returns is i1:
            returns = f"{zero} {returns}"
        linkage = "" if exported else "internal "
        attributes = "#0" if exported else "#1"
        module.functions.append(trace.text(f"define {linkage}{returns} @{name}({parameters}) {attributes}"))


def function_in_module(module: ModuleTrace, function: Function[Any]) -> str:
    """The name of `function` as a noinline function of `module`, traced on first use."""
    known = module.kernels.get(id(function))
    if known is None:
        name = module.unique(function.name)
        module.kernels[id(function)] = (function, name)  # keeps it alive, so that ids stay unique
        define(module, function, name)
        return name
    return known[1]


def call(function: Function[R], *args: Operand, cold: bool = False) -> R:
    """A real call (never inlined) of a kernel in the same module.

    cold: whether it is rarely reached; the compiler then keeps it out of the way.
    """
    trace = current()
    if trace.eager:
        return function(*args)
    values = function._convert(args)
    name = function_in_module(trace.module, function)
    operands = ", ".join(f"{v.type.text} {v.text}" for v in values)
    note = " cold" if cold else ""
    if function.returns is None:
        trace.invalidate()
        trace.emit(f"call void @{name}({operands}){note}")
        return cast("R", None)
    text = f"call {function.returns.text} @{name}({operands}){note}"
    return cast("R", Value(function.returns, trace.call(text)))
