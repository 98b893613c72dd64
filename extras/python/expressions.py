"""The evaluation of the expressions of simulated Python scripts."""

import ast
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from . import costs
from .errors import PythonError, error, missing_variable
from .machine import Evaluator
from .methods import Attributes
from .operations import is_native
from .values import (
    END,
    BulkText,
    Code,
    DefaultDict,
    Environment,
    Frame,
    Function,
    GeneratorObject,
    Instance,
    NativeObject,
    NativeType,
    PyClass,
    Scope,
    Value,
    YieldedValue,
    type_name,
)

_BINARY: Final[Mapping[type, str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
}  # fmt: skip
_COMPARISONS: Final[Mapping[type, str]] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_MAX_SUGGESTED: Final = 300
"""The names that are compared with one that is not defined."""
_UNARY: Final = {ast.USub: ("-", "__neg__"), ast.UAdd: ("+", "__pos__"), ast.Invert: ("~", "__invert__")}
_CONVERSIONS: Final = {ord("s"): "s", ord("r"): "r", ord("a"): "a"}


def binary_operator(node: ast.operator) -> str:
    return _BINARY[type(node)]


class Expressions(Attributes):
    # --- names

    def _name(self, node: ast.Name, frame: Frame) -> Value:
        return self.look_up(node.id, frame)

    def look_up(self, name: str, frame: Frame) -> Value:
        scope: Scope | None = frame.scope
        is_own = True
        while scope is not None and name not in scope.global_names:
            if (is_own or not scope.is_class) and name in scope.variables:
                return scope.variables[name]
            if scope.local_names is not None and name in scope.local_names:
                if is_own:
                    text = f"cannot access local variable '{name}' where it is not associated with a value"
                    old = f"local variable '{name}' referenced before assignment"
                    raise error("UnboundLocalError", text if self.version >= (3, 11) else old)
                text = f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
                raise error("NameError", text)
            scope, is_own = scope.parent, False
        if name in frame.module:
            return frame.module[name]
        if name in self.builtins:
            return self.builtins[name]
        problem = error("NameError", f"name '{name}' is not defined")
        problem.value.fields["name"] = name
        problem.value.visible_names = self._visible_names(frame)
        raise problem

    def _visible_names(self, frame: Frame) -> list[str]:
        names: list[str] = []
        scope: Scope | None = frame.scope
        while scope is not None:
            names += islice(scope.variables, _MAX_SUGGESTED)
            scope = scope.parent
        return [*islice(names, _MAX_SUGGESTED), *islice(frame.module, _MAX_SUGGESTED), *self.builtins]

    def assign_name(self, name: str, value: Value, frame: Frame) -> None:
        variables = self._variables_for(name, frame)
        if name not in variables or not _is_same(variables[name], value):
            self.own_changes += 1
            variables[name] = value

    def delete_name(self, name: str, frame: Frame) -> None:
        variables = self._variables_for(name, frame)
        if name not in variables:
            raise error("NameError", f"name '{name}' is not defined")
        self.own_changes += 1
        del variables[name]

    @staticmethod
    def _variables_for(name: str, frame: Frame) -> dict[str, Value]:
        scope = frame.scope
        if name in scope.global_names:
            return frame.module
        if name in scope.nonlocal_names:
            outer = scope.parent
            while outer is not None:
                if (
                    outer.local_names is not None
                    and name in outer.local_names
                    and name not in outer.nonlocal_names
                ):
                    return outer.variables
                outer = outer.parent
        return scope.variables

    # --- operators

    def _binary(self, node: ast.BinOp, frame: Frame) -> Code:
        left = yield node.left, frame
        right = yield node.right, frame
        frame.node = node
        return (yield self.operate(_BINARY[type(node.op)], left, right))

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Code:
        value = yield node.operand, frame
        frame.node = node
        if isinstance(node.op, ast.Not):
            return not (yield self.truth(value))
        symbol, name = _UNARY[type(node.op)]
        if isinstance(value, Instance) and (method := self.find_method(value, name)) is not None:
            return (yield self.call(method, []))
        if not is_native(value):
            raise error("TypeError", f"bad operand type for unary {symbol}: '{type_name(value)}'")
        self.charge(costs.CHARACTER * costs.size(value))
        return -value if symbol == "-" else +value if symbol == "+" else ~value

    def _boolean(self, node: ast.BoolOp, frame: Frame) -> Code:
        is_and = isinstance(node.op, ast.And)
        value: Value = None
        for index, operand in enumerate(node.values):
            value = yield operand, frame
            if index < len(node.values) - 1 and bool((yield self.truth(value))) is not is_and:
                break
        return value

    def _comparison(self, node: ast.Compare, frame: Frame) -> Code:
        left = yield node.left, frame
        result: Value = True
        for operator_node, operand in zip(node.ops, node.comparators, strict=True):
            right = yield operand, frame
            frame.node = node
            result = yield self._compare(operator_node, left, right)
            if not (yield self.truth(result)):
                break
            left = right
        return result

    def _compare(self, node: ast.cmpop, left: Value, right: Value) -> Code:
        match node:
            case ast.Is():
                return left is right
            case ast.IsNot():
                return left is not right
            case ast.In():
                return (yield self.contains(right, left))
            case ast.NotIn():
                return not (yield self.contains(right, left))
            case _:
                return (yield self.compare(_COMPARISONS[type(node)], left, right))

    def _conditional(self, node: ast.IfExp, frame: Frame) -> Code:
        test = yield node.test, frame
        return (yield ((node.body if (yield self.truth(test)) else node.orelse), frame))

    def _named(self, node: ast.NamedExpr, frame: Frame) -> Code:
        value = yield node.value, frame
        self.assign_name(node.target.id, value, frame)
        return value

    # --- displays

    def _elements(self, nodes: list[ast.expr], frame: Frame) -> Code:
        values: list[Value] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                inner = yield node.value, frame
                values += yield self.collect(inner)
            else:
                values.append((yield node, frame))
        return values

    def _list(self, node: ast.List, frame: Frame) -> Code:
        return (yield self._elements(node.elts, frame))

    def _tuple(self, node: ast.Tuple, frame: Frame) -> Code:
        return tuple((yield self._elements(node.elts, frame)))

    def _set(self, node: ast.Set, frame: Frame) -> Code:
        values = yield self._elements(node.elts, frame)
        return {self.key(value) for value in values}

    def _dict(self, node: ast.Dict, frame: Frame) -> Code:
        result: dict[Value, Value] = {}
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            if key_node is None:
                result |= yield self._mapping((yield value_node, frame))
                continue
            key = yield key_node, frame
            result[self.key(key)] = yield value_node, frame
        return result

    def _slice(self, node: ast.Slice, frame: Frame) -> Code:
        parts: list[Value] = []
        for part in (node.lower, node.upper, node.step):
            parts.append(None if part is None else (yield part, frame))
        return slice(*parts)

    def _joined(self, node: ast.JoinedStr, frame: Frame) -> Code:
        parts: list[str] = []
        for part in node.values:
            parts.append((yield part, frame))
        length = sum(map(len, parts))
        self.check_length(length)
        self.charge(costs.CHARACTER * length)
        return "".join(parts)

    def _mapping(self, value: Value) -> Code:
        """Return what `**` adds."""
        if not isinstance(value, dict):
            raise error("TypeError", f"'{type_name(value)}' object is not a mapping")
        self.charge(costs.ENTRY * len(value))
        return value
        yield

    def _formatted(self, node: ast.FormattedValue, frame: Frame) -> Code:
        value = yield node.value, frame
        specification = "" if node.format_spec is None else (yield node.format_spec, frame)
        frame.node = node.value
        if node.conversion == ord("s"):
            value = yield self.text(value)
        elif node.conversion in _CONVERSIONS:
            value = yield self.representation(value)
        return (yield self.formatted(value, specification))

    # --- subscripts and attributes

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Code:
        value = yield node.value, frame
        index = yield node.slice, frame
        frame.node = node
        return (yield self.item(value, index))

    def item(self, value: Value, index: Value) -> Code:  # noqa: C901 - a case for each kind of value
        if isinstance(value, Instance):
            method = self.find_method(value, "__getitem__")
            if method is not None:
                return (yield self.call(method, [index]))
        elif isinstance(value, DefaultDict):
            if self.key(index) not in value:
                if value.factory is None:
                    raise error("KeyError", index)
                value[index] = yield self.call(value.factory, [])
                self.own_changes += 1
            return value[index]
        elif isinstance(value, Environment) and self.key(index) not in value:
            raise missing_variable(index, self.version)
        elif isinstance(value, BulkText):
            if isinstance(value.unit, list) and isinstance(index, int) and value.is_exact:
                return value.unit[range(value.length)[index] % len(value.unit)]
            return self.text_of_bulk(value)[index]
        elif isinstance(value, (PyClass, NativeType)):
            return value  # an annotation such as list[int]
        elif isinstance(value, NativeObject) and "__getitem__" in value.members:
            return (yield self.call(value.members["__getitem__"], [index]))
        elif is_native(value) and hasattr(value, "__getitem__"):
            if isinstance(index, slice) and not isinstance(value, range):
                count = len(range(len(value))[index])
                self.charge((costs.ELEMENT if isinstance(value, (list, tuple)) else costs.CHARACTER) * count)
            return value[self.key(index) if isinstance(value, dict) else index]
        raise error("TypeError", f"'{type_name(value)}' object is not subscriptable")

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Code:
        value = yield node.value, frame
        frame.node = node
        return (yield self.attribute(value, node.attr))

    # --- calls

    def _call(self, node: ast.Call, frame: Frame) -> Code:
        function = yield node.func, frame
        arguments: list[Value] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                inner = yield argument.value, frame
                arguments += yield self.collect(inner)
            else:
                arguments.append((yield argument, frame))
        keywords: dict[str, Value] = {}
        for keyword in node.keywords:
            value = yield keyword.value, frame
            if keyword.arg is None:
                keywords |= yield self._mapping(value)
                if not all(isinstance(name, str) for name in value):
                    raise error("TypeError", "keywords must be strings")
            else:
                keywords[keyword.arg] = value
        frame.node = node
        self.frame = frame
        result = yield self.call(function, arguments, keywords)
        frame.node = node
        return result

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Code:
        return (yield self.make_function(node, frame))

    # --- comprehensions and generators

    def _list_comprehension(self, node: ast.ListComp, frame: Frame) -> Code:
        values: list[Value] = []
        yield self._comprehend(node, frame, values.append)
        return values

    def _set_comprehension(self, node: ast.SetComp, frame: Frame) -> Code:
        values: set[Value] = set()
        yield self._comprehend(node, frame, lambda value: values.add(self.key(value)))
        return values

    def _dict_comprehension(self, node: ast.DictComp, frame: Frame) -> Code:
        values: dict[Value, Value] = {}

        def add(pair: tuple[Value, Value]) -> None:
            values[self.key(pair[0])] = pair[1]

        yield self._comprehend(node, frame, add)
        return values

    def _comprehend(self, node: Any, frame: Frame, add: Any) -> Code:
        source = yield node.generators[0].iter, frame
        frame.node = node
        if isinstance(source, range) and isinstance(node, ast.ListComp) and not node.generators[0].ifs:
            yield self.check_size(len(source))
        iterator = yield self.iterate(source)
        inner = self._comprehension_frame(node, frame)
        inner.node = frame.node = node
        try:
            yield self._loop(node, 0, iterator, inner, add)
        except PythonError as problem:
            if self.version < (3, 12):
                problem.pass_frame(inner)
            raise
        return None

    def _comprehension_frame(self, node: Any, frame: Frame) -> Frame:
        names = {
            ast.ListComp: "<listcomp>", ast.SetComp: "<setcomp>", ast.DictComp: "<dictcomp>", ast.GeneratorExp: "<genexpr>",
        }  # fmt: skip
        inner = Frame(names[type(node)], frame.file, Scope({}, frame.scope), frame.module)
        inner.function, inner.arguments = frame.function, frame.arguments
        inner.scope.nonlocal_names = self.fact(walrus_names, node)
        return inner

    def _loop(self, node: Any, index: int, iterator: Value, frame: Frame, add: Any) -> Code:
        generator = node.generators[index]
        while (item := (yield self.advance(iterator))) is not END:
            yield self.assign(generator.target, item, frame)
            if not (yield self._passes(generator.ifs, frame)):
                continue
            if index + 1 < len(node.generators):
                source = yield node.generators[index + 1].iter, frame
                inner = yield self.iterate(source)
                yield self._loop(node, index + 1, inner, frame, add)
                continue
            if isinstance(node, ast.DictComp):
                key = yield node.key, frame
                value = (key, (yield node.value, frame))
            else:
                value = yield node.elt, frame
            result = add(value)
            if result is not None:
                yield result
        return None

    def _passes(self, tests: list[ast.expr], frame: Frame) -> Code:
        for test in tests:
            if not (yield self.truth((yield test, frame))):
                return False
        return True

    def _generator_expression(self, node: ast.GeneratorExp, frame: Frame) -> Code:
        source = yield node.generators[0].iter, frame
        iterator = yield self.iterate(source)
        inner = self._comprehension_frame(node, frame)
        return GeneratorObject("<genexpr>", self.drive(self._generate(node, iterator, inner)))

    def _generate(self, node: ast.GeneratorExp, iterator: Value, frame: Frame) -> Code:
        try:
            yield self._loop(node, 0, iterator, frame, YieldedValue)
        except PythonError as problem:
            problem.pass_frame(frame)
            raise
        return None

    def _yield(self, node: ast.Yield, frame: Frame) -> Code:
        value = None if node.value is None else (yield node.value, frame)
        return (yield YieldedValue(value))

    def _yield_from(self, node: ast.YieldFrom, frame: Frame) -> Code:
        iterator = yield self.iterate((yield node.value, frame))
        while (item := (yield self.advance(iterator))) is not END:
            yield YieldedValue(item)
        return iterator.result if isinstance(iterator, GeneratorObject) else None

    # --- what statements provide

    def make_function(self, node: ast.FunctionDef | ast.Lambda, frame: Frame) -> Code:
        function = Function(node, frame)
        for default in node.args.defaults:
            function.defaults.append((yield default, frame))
        for argument, keyword_default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
            if keyword_default is not None:
                function.keyword_defaults[argument.arg] = yield keyword_default, frame
        return function

    def assign(self, target: ast.expr, value: Value, frame: Frame) -> Code:
        raise NotImplementedError


def _is_same(old: Value, new: Value) -> bool:
    """Return whether an assignment changes nothing."""
    return old is new or (costs.is_small(new) and type(old) is type(new) and old == new)


def walrus_names(node: ast.AST) -> frozenset[str]:
    return frozenset(inner.target.id for inner in ast.walk(node) if isinstance(inner, ast.NamedExpr))


EXPRESSIONS: Final[dict[type, Evaluator]] = {
    ast.Name: Expressions._name,  # noqa: SLF001 - of this module
    ast.BinOp: Expressions._binary,  # noqa: SLF001
    ast.UnaryOp: Expressions._unary,  # noqa: SLF001
    ast.BoolOp: Expressions._boolean,  # noqa: SLF001
    ast.Compare: Expressions._comparison,  # noqa: SLF001
    ast.IfExp: Expressions._conditional,  # noqa: SLF001
    ast.NamedExpr: Expressions._named,  # noqa: SLF001
    ast.List: Expressions._list,  # noqa: SLF001
    ast.Tuple: Expressions._tuple,  # noqa: SLF001
    ast.Set: Expressions._set,  # noqa: SLF001
    ast.Dict: Expressions._dict,  # noqa: SLF001
    ast.Slice: Expressions._slice,  # noqa: SLF001
    ast.JoinedStr: Expressions._joined,  # noqa: SLF001
    ast.FormattedValue: Expressions._formatted,  # noqa: SLF001
    ast.Subscript: Expressions._subscript,  # noqa: SLF001
    ast.Attribute: Expressions._attribute,  # noqa: SLF001
    ast.Call: Expressions._call,  # noqa: SLF001
    ast.Lambda: Expressions._lambda,  # noqa: SLF001
    ast.ListComp: Expressions._list_comprehension,  # noqa: SLF001
    ast.SetComp: Expressions._set_comprehension,  # noqa: SLF001
    ast.DictComp: Expressions._dict_comprehension,  # noqa: SLF001
    ast.GeneratorExp: Expressions._generator_expression,  # noqa: SLF001
    ast.Yield: Expressions._yield,  # noqa: SLF001
    ast.YieldFrom: Expressions._yield_from,  # noqa: SLF001
}
