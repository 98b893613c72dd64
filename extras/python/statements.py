"""The execution of the statements of simulated Python scripts."""

import ast
from collections import deque
from collections.abc import Callable, Mapping
from math import inf
from operator import iadd, iand, ior, isub, ixor
from typing import Any, Final

from mockube.container_runtime.simulated.shell.compound_commands import ITERATION_SECONDS
from mockube.container_runtime.simulated.shell.process import RepeatedIteration, Sleep

from . import costs
from .calls import Calls
from .errors import ERRORS, PythonError, Stop, error
from .expressions import binary_operator
from .machine import Evaluator
from .operations import is_native
from .values import (
    END,
    BulkText,
    Code,
    ErrorInstance,
    Frame,
    Instance,
    NativeObject,
    PyClass,
    Scope,
    TooLargeInPython,
    Value,
    Wrapper,
    is_subclass,
    type_name,
)


def _breaks(node: ast.For | ast.While) -> bool:
    """Return whether a loop may end in an iteration."""
    return any(isinstance(part, (ast.Break, ast.Return, ast.Raise)) for part in ast.walk(node))


def _never_ends(node: ast.While) -> bool:
    """Return whether a loop goes on until an error ends it."""
    return isinstance(node.test, ast.Constant) and bool(node.test.value) and not _breaks(node)


_LASTING: Final = (
    *(ast.Expr, ast.Call, ast.AugAssign, ast.Add, ast.Mult, ast.Sub, ast.BinOp, ast.Constant, ast.keyword),
    *(ast.Name, ast.Attribute, ast.Load, ast.Store, ast.JoinedStr, ast.FormattedValue, ast.Pass),
)  # fmt: skip
_LASTING_CALLS: Final = frozenset(
    {
        "print",
        "time.sleep",
        "time.time",
        "time.ctime",
        "time.strftime",
        "datetime.now",
        "datetime.datetime.now",
        "random.random",
        "sys.stdout.flush",
    }
)


def _lasts(node: ast.While) -> bool:
    """Return whether a loop certainly goes on for ever: it only prints, sleeps and counts."""
    parts = [part for statement in node.body for part in ast.walk(statement)]
    return (
        _never_ends(node)
        and all(isinstance(part, _LASTING) for part in parts)
        and all(ast.unparse(part.func) in _LASTING_CALLS for part in parts if isinstance(part, ast.Call))
        and all(isinstance(part.value, ast.Constant) for part in parts if isinstance(part, ast.AugAssign))
        and all(
            type(part.value.value) is int
            for part in parts
            if isinstance(part, ast.AugAssign) and isinstance(part.value, ast.Constant)
        )
    )


_CHANGED_BY: Final = (
    (bytearray, (bytes, bytearray)),
    (set, (set, frozenset)),
    (dict, dict),
    (deque, (list, tuple, deque)),
)
"""The containers that an operator changes, and the operands with which it does."""
_IN_PLACE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": iadd,
    "-": isub,
    "|": ior,
    "&": iand,
    "^": ixor,
}
"""The operators that change a container; they have the same result as the others, but for what else refers to it."""


class Control:
    """How a statement ends a loop or a function."""

    def __init__(self, value: Value = None) -> None:
        self.value = value


BREAK: Final = Control()
CONTINUE: Final = Control()


class Statements(Calls):
    def block(self, nodes: list[ast.stmt], frame: Frame) -> Code:
        for node in nodes:
            control = yield node, frame
            if control is not None:
                return control
        return None

    def _expression(self, node: ast.Expr, frame: Frame) -> Code:
        yield node.value, frame
        return None

    def _pass(self, _: ast.Pass, __: Frame) -> Value:
        return None

    # --- assignments

    def _assign(self, node: ast.Assign, frame: Frame) -> Code:
        value = yield node.value, frame
        frame.node = node
        for target in node.targets:
            yield self.assign(target, value, frame)
        return None

    def _annotated(self, node: ast.AnnAssign, frame: Frame) -> Code:
        if isinstance(node.target, ast.Name) and frame.scope.local_names is None:
            annotations = frame.scope.variables.setdefault("__annotations__", {})
            if isinstance(annotations, dict):
                annotations[node.target.id] = self.fact(ast.unparse, node.annotation)
        if node.value is not None:
            value = yield node.value, frame
            yield self.assign(node.target, value, frame)
        return None

    def _augmented(self, node: ast.AugAssign, frame: Frame) -> Code:
        operator = binary_operator(node.op)
        target = node.target
        if isinstance(target, ast.Name):
            frame.node = target
            old = self.look_up(target.id, frame)
            value = yield node.value, frame
            frame.node = node
            self.assign_name(target.id, (yield self._in_place(operator, old, value)), frame)
            return None
        receiver = yield target.value, frame
        if isinstance(target, ast.Attribute):
            frame.node = target
            old = yield self.attribute(receiver, target.attr)
            value = yield node.value, frame
            frame.node = node
            yield self.set_attribute(receiver, target.attr, (yield self._in_place(operator, old, value)))
            return None
        index = yield target.slice, frame
        frame.node = target
        old = yield self.item(receiver, index)
        value = yield node.value, frame
        frame.node = node
        yield self._set_item(receiver, index, (yield self._in_place(operator, old, value)))
        return None

    def _in_place(self, operator: str, old: Value, value: Value) -> Code:
        if operator in _IN_PLACE and any(
            isinstance(old, kind) and isinstance(value, others) for kind, others in _CHANGED_BY
        ):
            self.own_changes += 1
            yield self.check_size(len(old) + len(value))
            self.charge(costs.operation(operator, old, value))
            return _IN_PLACE[operator](old, value)
        if isinstance(old, list) and operator == "+":
            old += yield self.collect(value)
            self.own_changes += 1
            yield self.check_size(len(old))
            return old
        if isinstance(old, Instance) and operator == "+":
            method = self.find_method(old, "__iadd__")
            if method is not None:
                return (yield self.call(method, [value]))
        try:
            return (yield self.operate(operator, old, value))
        except PythonError as problem:
            arguments = problem.value.arguments
            if arguments and isinstance(arguments[0], str) and arguments[0].startswith("unsupported operand"):
                symbol = "** or pow()" if operator == "**" else operator
                text = arguments[0].replace(f"for {symbol}:", f"for {operator}=:", 1)
                problem.value.fields["args"] = (text,)
            raise

    def assign(self, target: ast.expr, value: Value, frame: Frame) -> Code:
        match target:
            case ast.Name():
                self.assign_name(target.id, value, frame)
            case ast.Tuple() | ast.List():
                yield self._unpack(target, value, frame)
            case ast.Attribute():
                receiver = yield target.value, frame
                frame.node = target
                yield self.set_attribute(receiver, target.attr, value)
            case ast.Subscript():
                receiver = yield target.value, frame
                index = yield target.slice, frame
                frame.node = target
                yield self._set_item(receiver, index, value)
            case ast.Starred():
                yield self.assign(target.value, value, frame)
            case _:
                self.refuse(target)
        return None

    def _unpack(self, target: ast.Tuple | ast.List, value: Value, frame: Frame) -> Code:
        frame.node = target
        try:
            values = yield self.collect(value)
        except PythonError as problem:
            if "is not iterable" in "".join(
                text for text in problem.value.arguments[:1] if isinstance(text, str)
            ):
                raise error("TypeError", f"cannot unpack non-iterable {type_name(value)} object") from None
            raise
        self.charge(2 * costs.ELEMENT * len(values))
        count = len(target.elts)
        star = next((index for index, item in enumerate(target.elts) if isinstance(item, ast.Starred)), None)
        if star is not None:
            after = count - star - 1
            if len(values) < count - 1:
                raise error(
                    "ValueError",
                    f"not enough values to unpack (expected at least {count - 1}, got {len(values)})",
                )
            values[star : len(values) - after] = [values[star : len(values) - after]]
        elif len(values) < count:
            raise error("ValueError", f"not enough values to unpack (expected {count}, got {len(values)})")
        elif len(values) > count:
            raise error("ValueError", f"too many values to unpack (expected {count})")
        for item, part in zip(target.elts, values, strict=True):
            yield self.assign(item, part, frame)
        return None

    def _set_item(self, receiver: Value, index: Value, value: Value) -> Code:
        self.own_changes += 1
        if (
            isinstance(receiver, Instance)
            and (method := self.find_method(receiver, "__setitem__")) is not None
        ):
            yield self.call(method, [index, value])
        elif isinstance(receiver, NativeObject) and "__setitem__" in receiver.members:
            yield self.call(receiver.members["__setitem__"], [index, value])
        elif isinstance(receiver, BulkText) and isinstance(receiver.unit, (list, bytearray)):
            self.refuse_feature(
                f"a change of a {type_name(receiver)} of {receiver.length} elements in Python"
            )
        elif is_native(receiver) and hasattr(receiver, "__setitem__"):
            if isinstance(index, slice):
                value = yield self.collect(value)
                self.charge(costs.ELEMENT * (len(receiver) + len(value)))
                yield self.check_size(len(receiver) + len(value))
            is_new = isinstance(receiver, dict) and self.key(index) not in receiver
            yield self.check_size(len(receiver) + is_new)
            receiver[index] = value
        else:
            raise error("TypeError", f"'{type_name(receiver)}' object does not support item assignment")
        return None

    def _delete(self, node: ast.Delete, frame: Frame) -> Code:
        for target in node.targets:
            if isinstance(target, ast.Name):
                frame.node = target
                self.delete_name(target.id, frame)
                continue
            assert isinstance(target, (ast.Attribute, ast.Subscript))
            receiver = yield target.value, frame
            frame.node = target
            self.own_changes += 1
            if isinstance(target, ast.Attribute):
                if not isinstance(receiver, Instance) or target.attr not in receiver.fields:
                    raise error("AttributeError", target.attr)
                del receiver.fields[target.attr]
                continue
            index = yield target.slice, frame
            if not is_native(receiver) or not hasattr(receiver, "__delitem__"):
                raise error("TypeError", f"'{type_name(receiver)}' object doesn't support item deletion")
            if isinstance(receiver, dict):
                self.key(index)
            else:
                self.charge(
                    costs.ELEMENT / 8 * len(receiver)
                    if isinstance(index, int)
                    else costs.ELEMENT * len(receiver)
                )
            del receiver[index]
        return None

    def _global(self, node: ast.Global, frame: Frame) -> None:
        frame.scope.global_names |= set(node.names)

    def _nonlocal(self, _: ast.Nonlocal, __: Frame) -> None:
        """Do nothing: the names are known when the function is called."""

    # --- conditions and loops

    def _if(self, node: ast.If, frame: Frame) -> Code:
        test = yield node.test, frame
        return (yield self.block(node.body if (yield self.truth(test)) else node.orelse, frame))

    def _while(self, node: ast.While, frame: Frame) -> Code:
        count = 0
        while True:
            before = self._iteration_start()
            test = yield node.test, frame
            if not (yield self.truth(test)):
                return (yield self.block(node.orelse, frame))
            count += 1
            try:
                control = yield self.block(node.body, frame)
            except TooLargeInPython:
                if count > 1 and self.fact(_never_ends, node):
                    yield self.grow_on(inf)
                raise
            if control is BREAK:
                return None
            if control is not None and control is not CONTINUE:
                return control
            if self.handlers and self.process.processes.has_signals():
                yield self.handle_signals()
            yield self._end_iteration(before, node)

    def _iteration_start(self) -> tuple[int, float, int, float]:
        processes, host = self.process.processes, self.process.host
        return self.changes, processes.time, host.time_reads, processes.busy_seconds

    def _end_iteration(self, before: tuple[int, float, int, float], node: ast.While) -> Code:
        """Skip iterations if nothing but the time has changed since the beginning of this one, as the loops of shells do."""
        number, time, reads, busy = before
        processes, host = self.process.processes, self.process.host
        changes = self.changes != number
        may_end = changes or host.time_reads != reads
        if not processes.is_alone() or (may_end and not self.fact(_lasts, node)):
            return None
        if processes.time == time:
            yield Sleep(ITERATION_SECONDS, cores=1.0)
        duration = processes.time - time
        if duration > 0:
            cores = (processes.busy_seconds - busy) / duration
            iterations = yield RepeatedIteration(duration, cores, changes)
            if iterations:
                host.elapsed += duration * int(iterations)
                processes.skip(duration * int(iterations))
        return None

    def _for(self, node: ast.For, frame: Frame) -> Code:
        source = yield node.iter, frame
        frame.node = node
        iterator = yield self.iterate(source)
        count = 0
        while True:
            frame.node = node
            item = yield self.advance(iterator)
            if item is END:
                return (yield self.block(node.orelse, frame))
            yield self.assign(node.target, item, frame)
            count += 1
            try:
                control = yield self.block(node.body, frame)
            except TooLargeInPython:
                if count > 1 and isinstance(source, range) and not self.fact(_breaks, node):
                    yield self.grow_on(len(source) / count)
                raise
            if control is BREAK:
                return None
            if control is not None and control is not CONTINUE:
                return control

    def _break(self, _: ast.Break, __: Frame) -> Value:
        return BREAK

    def _continue(self, _: ast.Continue, __: Frame) -> Value:
        return CONTINUE

    def _return(self, node: ast.Return, frame: Frame) -> Code:
        return Control(None if node.value is None else (yield node.value, frame))

    # --- errors

    def _raise(self, node: ast.Raise, frame: Frame) -> Code:
        frame.node = node
        if node.exc is None:
            if self.handled is None:
                raise error("RuntimeError", "No active exception to reraise")
            again = PythonError(self.handled)
            again.frame = frame
            raise again
        value = yield node.exc, frame
        frame.node = node
        problem = yield self.error_of(value)
        if node.cause is not None:
            cause = yield node.cause, frame
            problem.value.cause = None if cause is None else (yield self.error_of(cause)).value
            problem.value.hides_context = True
        raise problem

    def error_of(self, value: Value) -> Code:
        """Return what `raise` raises for a value."""
        if isinstance(value, PyClass) and ERRORS["BaseException"] in value.order:
            value = yield self.call(value, [])
        if not isinstance(value, ErrorInstance):
            raise error("TypeError", "exceptions must derive from BaseException")
        return PythonError(value)

    def _assert(self, node: ast.Assert, frame: Frame) -> Code:
        test = yield node.test, frame
        if not (yield self.truth(test)):
            arguments = [] if node.msg is None else [(yield node.msg, frame)]
            frame.node = node if self.version < (3, 11) else node.test
            raise error("AssertionError", *arguments)
        return None

    def _try(self, node: ast.Try, frame: Frame) -> Code:
        try:
            try:
                control = yield self.block(node.body, frame)
            except PythonError as problem:
                problem.pass_frame(frame)
                control = yield self._handle(node, problem, frame)
            else:
                if control is None:
                    control = yield self.block(node.orelse, frame)
        except Exception as failure:
            if isinstance(failure, PythonError):
                failure.pass_frame(frame)
            elif not isinstance(failure, Stop):
                raise
            control = yield self.block(node.finalbody, frame)
            if control is None:
                raise
            return control
        final = yield self.block(node.finalbody, frame)
        return control if final is None else final

    def _handle(self, node: ast.Try, problem: PythonError, frame: Frame) -> Code:
        for handler in node.handlers:
            if handler.type is not None:
                expected = yield handler.type, frame
                if not is_subclass(problem.value.cls, expected):
                    continue
            before, self.handled = self.handled, problem.value
            if handler.name:
                self.assign_name(handler.name, problem.value, frame)
            try:
                return (yield self.block(handler.body, frame))
            except PythonError as second:
                second.pass_frame(frame)
                _set_context(second.value, problem.value)
                raise
            finally:
                self.handled = before
                if handler.name:
                    frame.scope.variables.pop(handler.name, None)
        raise problem

    def _with(self, node: ast.With, frame: Frame) -> Code:
        return (yield self._with_items(node.items, node, frame))

    def _with_items(self, items: list[ast.withitem], node: ast.With, frame: Frame) -> Code:
        if not items:
            return (yield self.block(node.body, frame))
        manager = yield items[0].context_expr, frame
        frame.node = items[0].context_expr
        enter, leave = yield self._context_methods(manager)
        value = yield self.call(enter, [])
        if items[0].optional_vars is not None:
            yield self.assign(items[0].optional_vars, value, frame)
        try:
            control = yield self._with_items(items[1:], node, frame)
        except PythonError as problem:
            problem.pass_frame(frame)
            handled = yield self.call(leave, [problem.value.cls, problem.value, None])
            if not (yield self.truth(handled)):
                raise
            return None
        yield self.call(leave, [None, None, None])
        return control

    def _context_methods(self, manager: Value) -> Code:
        try:
            enter = yield self.attribute(manager, "__enter__")
            return enter, (yield self.attribute(manager, "__exit__"))
        except PythonError:
            name = type_name(manager)
            text = f"'{name}' object does not support the context manager protocol"
            raise error("TypeError", text) from None

    # --- definitions

    def _function(self, node: ast.FunctionDef, frame: Frame) -> Code:
        decorators: list[Value] = []
        for decorator in node.decorator_list:
            decorators.append((yield decorator, frame))
        function = yield self.make_function(node, frame)
        if frame.scope.is_class:
            function.qualified_name = f"{frame.name}.{node.name}"
        result: Value = function
        for decorator_value in reversed(decorators):
            result = yield self.call(decorator_value, [result])
        self.assign_name(node.name, result, frame)
        return None

    def _class(self, node: ast.ClassDef, frame: Frame) -> Code:
        decorators: list[Value] = []
        for decorator in node.decorator_list:
            decorators.append((yield decorator, frame))
        bases: list[PyClass] = []
        for base_node in node.bases:
            base = yield base_node, frame
            frame.node = node
            if base is not self.builtins["object"]:
                bases.append(self.base_class(base))
        inner = Frame(node.name, frame.file, Scope({}, frame.scope), frame.module)
        inner.scope.is_class = True
        try:
            yield self.block(node.body, inner)
        except PythonError as problem:
            problem.pass_frame(inner)
            raise
        cls = PyClass(
            node.name, tuple(bases), inner.scope.variables, frame.module.get("__name__", "__main__")
        )
        for member in cls.namespace.values():
            function = member.function if isinstance(member, Wrapper) else member
            if hasattr(function, "owner") and function.owner is None:
                function.owner = cls
        yield self.finish_class(cls)
        result: Value = cls
        for decorator_value in reversed(decorators):
            result = yield self.call(decorator_value, [result])
        self.assign_name(node.name, result, frame)
        return None

    def base_class(self, base: Value) -> PyClass:
        raise NotImplementedError

    def finish_class(self, cls: PyClass) -> Code:
        raise NotImplementedError

    # --- the import statements

    def _import(self, node: ast.Import, frame: Frame) -> Code:
        frame.node = node
        for alias in node.names:
            module = yield self.import_module(alias.name)
            if alias.asname is None and "." in alias.name:
                module = self.modules[alias.name.partition(".")[0]]
            self.assign_name(alias.asname or alias.name.partition(".")[0], module, frame)
        return None

    def _import_from(self, node: ast.ImportFrom, frame: Frame) -> Code:
        frame.node = node
        if node.module == "__future__":
            return None
        module = yield self.import_module(node.module or "")
        for alias in node.names:
            if alias.name == "*":
                for name, value in module.members.items():
                    if not name.startswith("_"):
                        self.assign_name(name, value, frame)
                continue
            value = yield self.member(module, alias.name)
            self.assign_name(alias.asname or alias.name, value, frame)
        return None

    def member(self, module: Any, name: str) -> Code:
        raise NotImplementedError


def _set_context(value: ErrorInstance, context: ErrorInstance) -> None:
    if value is not context and value.context is None:
        value.context = context


STATEMENTS: Final[dict[type, Evaluator]] = {
    ast.Expr: Statements._expression,  # noqa: SLF001 - of this module
    ast.Pass: Statements._pass,  # noqa: SLF001
    ast.Assign: Statements._assign,  # noqa: SLF001
    ast.AnnAssign: Statements._annotated,  # noqa: SLF001
    ast.AugAssign: Statements._augmented,  # noqa: SLF001
    ast.Delete: Statements._delete,  # noqa: SLF001
    ast.Global: Statements._global,  # noqa: SLF001
    ast.Nonlocal: Statements._nonlocal,  # noqa: SLF001
    ast.If: Statements._if,  # noqa: SLF001
    ast.While: Statements._while,  # noqa: SLF001
    ast.For: Statements._for,  # noqa: SLF001
    ast.Break: Statements._break,  # noqa: SLF001
    ast.Continue: Statements._continue,  # noqa: SLF001
    ast.Return: Statements._return,  # noqa: SLF001
    ast.Raise: Statements._raise,  # noqa: SLF001
    ast.Assert: Statements._assert,  # noqa: SLF001
    ast.Try: Statements._try,  # noqa: SLF001
    ast.With: Statements._with,  # noqa: SLF001
    ast.FunctionDef: Statements._function,  # noqa: SLF001
    ast.ClassDef: Statements._class,  # noqa: SLF001
    ast.Import: Statements._import,  # noqa: SLF001
    ast.ImportFrom: Statements._import_from,  # noqa: SLF001
}
