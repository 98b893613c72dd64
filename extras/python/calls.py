"""The calls of functions, methods and classes in simulated Python scripts."""

import ast
from inspect import isgenerator
from typing import Any

from . import costs, limits
from .errors import ERRNO, ERRORS, PythonError, error
from .expressions import Expressions, walrus_names
from .values import (
    Builtin,
    Code,
    ErrorInstance,
    Frame,
    Function,
    GeneratorObject,
    Instance,
    Method,
    NativeObject,
    NativeType,
    PyClass,
    Scope,
    Value,
    type_name,
)


class _Names:
    """The names in the body of a function."""

    def __init__(self, node: ast.FunctionDef | ast.Lambda) -> None:
        self.assigned: set[str] = set()
        self.global_names: set[str] = set()
        self.nonlocal_names: set[str] = set()
        self.has_yield = False
        arguments = node.args
        for argument in (
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            arguments.vararg,
            arguments.kwarg,
        ):
            if argument is not None:
                self.assigned.add(argument.arg)
        remaining: list[ast.AST] = [*node.body] if isinstance(node, ast.FunctionDef) else [node.body]
        while remaining:
            remaining += self._visit(remaining.pop())
        self.local_names = frozenset(self.assigned - self.global_names - self.nonlocal_names)
        self.frozen_globals, self.frozen_nonlocals = (
            frozenset(self.global_names),
            frozenset(self.nonlocal_names),
        )

    def _visit(self, node: ast.AST) -> list[ast.AST]:
        """Add the names of a node; return the nodes in it that belong to the same function."""
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                self.assigned.add(node.name)
                return [*node.decorator_list]
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self.assigned |= walrus_names(node)
                return []
            case ast.Global():
                self.global_names |= set(node.names)
            case ast.Nonlocal():
                self.nonlocal_names |= set(node.names)
            case ast.Yield() | ast.YieldFrom():
                self.has_yield = True
            case ast.Name(ctx=ast.Store() | ast.Del()):
                self.assigned.add(node.id)
            case ast.ExceptHandler(name=str(name)):
                self.assigned.add(name)
            case ast.alias():
                self.assigned.add(node.asname or node.name.partition(".")[0])
            case _:
                pass
        return list(ast.iter_child_nodes(node))


class Calls(Expressions):
    frame: Frame
    """The frame that calls a built-in function at present."""

    def call(self, function: Value, arguments: list[Value], keywords: dict[str, Value] | None = None) -> Code:
        keywords = keywords or {}
        while isinstance(function, Method):
            arguments = [function.receiver, *arguments]
            function = function.function
        if isinstance(function, Function):
            return (yield self._call_function(function, arguments, keywords))
        if isinstance(function, (Builtin, NativeType)):
            result = function.call(self, arguments, keywords)
            return (yield result) if isgenerator(result) else result
        if isinstance(function, PyClass):
            return (yield self.instantiate(function, arguments, keywords))
        if isinstance(function, Instance) and (method := self.find_method(function, "__call__")) is not None:
            self.charge(costs.ELEMENT * len(arguments))
            with self.nest():
                return (yield self.call(method, arguments, keywords))
        if isinstance(function, NativeObject) and "__call__" in function.members:
            return (yield self.call(function.members["__call__"], arguments, keywords))
        raise error("TypeError", f"'{type_name(function)}' object is not callable")

    def _call_function(self, function: Function, arguments: list[Value], keywords: dict[str, Value]) -> Code:
        names = self.fact(_Names, function.node)
        scope = Scope(self._bind(function, arguments, keywords), function.frame.scope)
        scope.local_names = names.local_names
        scope.global_names = names.frozen_globals
        scope.nonlocal_names = names.frozen_nonlocals
        name = function.name
        frame = Frame(name, function.frame.file, scope, function.frame.module)
        frame.function, frame.arguments = function, arguments
        frame.node = function.node
        if names.has_yield:
            return GeneratorObject(name, self.drive(self._run_function(function, frame)))
        if self.depth >= limits.MAX_DEPTH:
            raise error("RecursionError", "maximum recursion depth exceeded")
        self.depth += 1
        try:
            return (yield self._run_function(function, frame))
        finally:
            self.depth -= 1

    def _run_function(self, function: Function, frame: Frame) -> Code:
        try:
            if isinstance(function.node, ast.Lambda):
                return (yield function.node.body, frame)
            control = yield self.block(function.node.body, frame)
        except PythonError as problem:
            problem.pass_frame(frame)
            raise
        return None if control is None else control.value

    def block(self, nodes: list[ast.stmt], frame: Frame) -> Code:
        raise NotImplementedError

    # --- arguments

    def _bind(  # noqa: C901 - the rules of one call
        self, function: Function, arguments: list[Value], keywords: dict[str, Value]
    ) -> dict[str, Value]:
        node = function.node.args
        parameters = [*node.posonlyargs, *node.args]
        names = [parameter.arg for parameter in parameters]
        self.charge(costs.NODE * (len(names) + len(keywords)) + costs.ELEMENT * len(arguments))
        title = f"{function.qualified_name}()"
        variables = dict(zip(names, arguments, strict=False))
        if node.vararg is not None:
            variables[node.vararg.arg] = tuple(arguments[len(names) :])
        elif len(arguments) > len(names):
            raise _too_many(function, title, len(arguments), keywords)
        others: dict[str, Value] = {}
        allowed = {*names, *(parameter.arg for parameter in node.kwonlyargs)}
        for name, value in keywords.items():
            if name not in allowed:
                if node.kwarg is None:
                    raise error("TypeError", f"{title} got an unexpected keyword argument '{name}'")
                others[name] = value
            elif name in variables:
                raise error("TypeError", f"{title} got multiple values for argument '{name}'")
            else:
                variables[name] = value
        if node.kwarg is not None:
            variables[node.kwarg.arg] = others
        first = len(names) - len(function.defaults)
        for index, name in enumerate(names):
            if name not in variables and index >= first:
                variables[name] = function.defaults[index - first]
        for name, value in function.keyword_defaults.items():
            variables.setdefault(name, value)
        _check_missing(title, names, [parameter.arg for parameter in node.kwonlyargs], variables)
        return variables

    # --- classes

    def instantiate(self, cls: PyClass, arguments: list[Value], keywords: dict[str, Value]) -> Code:
        if ERRORS["BaseException"] in cls.order:
            return (yield self._make_error(cls, arguments, keywords))
        instance = Instance(cls)
        initialize = cls.find("__init__")
        if initialize is not None:
            yield self.call(initialize, [instance, *arguments], keywords)
        elif arguments or keywords:
            raise error("TypeError", f"{cls.name}() takes no arguments")
        return instance

    def _make_error(self, cls: PyClass, arguments: list[Value], keywords: dict[str, Value]) -> Code:
        if cls is ERRORS["OSError"] and len(arguments) > 1:
            name = next((name for number, name in ERRNO.values() if number == arguments[0]), "OSError")
            cls = ERRORS[name]
        instance = ErrorInstance(cls, tuple(arguments))
        if ERRORS["SystemExit"] in cls.order:
            instance.fields["code"] = (arguments or [None])[0]
        if ERRORS["StopIteration"] in cls.order:
            instance.fields["value"] = (arguments or [None])[0]
        if ERRORS["OSError"] in cls.order and len(arguments) > 1:
            instance.fields |= {"errno": arguments[0], "strerror": arguments[1]}
            instance.fields["filename"] = arguments[2] if len(arguments) > 2 else None
        initialize = cls.find("__init__")
        if initialize is not None:
            yield self.call(initialize, [instance, *arguments], keywords)
        return instance


def _too_many(function: Function, title: str, count_given: int, keywords: dict[str, Value]) -> PythonError:
    del keywords
    node = function.node.args
    count = len(node.posonlyargs) + len(node.args)
    required = count - len(function.defaults)
    takes = f"from {required} to {count}" if function.defaults else str(count)
    plural = "" if count == 1 and not function.defaults else "s"
    verb = "was" if count_given == 1 else "were"
    return error(
        "TypeError", f"{title} takes {takes} positional argument{plural} but {count_given} {verb} given"
    )


def _check_missing(title: str, names: list[str], keyword_names: list[str], variables: dict[str, Any]) -> None:
    for kind, parameters in (("positional", names), ("keyword-only", keyword_names)):
        missing = [f"'{name}'" for name in parameters if name not in variables]
        if missing:
            plural = "s" if len(missing) > 1 else ""
            listed = missing[0]
            if len(missing) == 2:
                listed = " and ".join(missing)
            elif len(missing) > 2:
                listed = f"{', '.join(missing[:-1])}, and {missing[-1]}"
            text = f"{title} missing {len(missing)} required {kind} argument{plural}: {listed}"
            raise error("TypeError", text)
