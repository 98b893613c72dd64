"""The operators of simulated Python scripts, on values whose sizes are checked before anything is computed."""

import operator
from collections import deque
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone
from typing import Any, Final

from mockube.container_runtime.simulated.shell import limits

from .errors import PythonError, error
from .machine import Machine
from .values import (
    BulkText,
    Code,
    DefaultDict,
    Instance,
    NativeObject,
    NativeType,
    PyClass,
    Value,
    type_name,
)

_OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_,
    "|": operator.or_, "^": operator.xor,
}  # fmt: skip
_METHODS: Final[Mapping[str, str]] = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "<<": "lshift",
    ">>": "rshift", "&": "and", "|": "or", "^": "xor",
}  # fmt: skip
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_COMPARISON_METHODS: Final[Mapping[str, tuple[str, str]]] = {
    "<": ("__lt__", "__gt__"), "<=": ("__le__", "__ge__"), "==": ("__eq__", "__eq__"), "!=": ("__ne__", "__ne__"),
    ">": ("__gt__", "__lt__"), ">=": ("__ge__", "__le__"),
}  # fmt: skip
_SEQUENCES: Final = (str, bytes, bytearray, list, tuple)
_SCALARS: Final = (
    int,
    float,
    str,
    bytes,
    type(None),
    datetime,
    date,
    time,
    timedelta,
    timezone,
    complex,
    range,
    slice,
    type(...),
    type(NotImplemented),
)
NATIVE: Final[tuple[type, ...]] = (
    *_SCALARS, list, tuple, dict, set, frozenset, bytearray, deque,
    type({}.keys()), type({}.values()), type({}.items()),
)  # fmt: skip
_MAX_BITS: Final = 1 << 20
_MAX_NODES: Final = 5_000
"""The values in a container that is compared or printed at once."""


def is_native(value: Value) -> bool:
    return isinstance(value, NATIVE)


def is_plain(value: Value) -> bool:
    """Return whether a value, and all in it, are numbers, texts and containers of bounded size."""
    remaining = [value]
    count = 0
    while remaining:
        item = remaining.pop()
        count += 1
        if count > _MAX_NODES:
            return False
        if isinstance(item, _SCALARS):
            continue
        if isinstance(item, DefaultDict) or not is_native(item):
            return False
        if isinstance(item, dict):
            remaining += item.keys()
            remaining += item.values()
        else:
            remaining += item
    return True


class Operations(Machine):
    """The part of the interpreter that computes."""

    def operate(self, operator_text: str, left: Value, right: Value) -> Code:  # noqa: C901 - a case for each kind of value
        if isinstance(left, (Instance, PyClass)) or isinstance(right, (Instance, PyClass)):
            return (yield self._operate_on_instances(operator_text, left, right))
        if isinstance(left, BulkText) or isinstance(right, BulkText):
            return (yield self._operate_on_bulk(operator_text, left, right))
        if operator_text == "%" and isinstance(left, str):
            return (yield self.format_percent(left, right))
        if operator_text == "|" and isinstance(left, (NativeType, PyClass)):
            return left  # a type in an annotation
        if not (is_native(left) and is_native(right)):
            raise _unsupported(operator_text, left, right)
        if operator_text == "*" and (isinstance(left, _SEQUENCES) or isinstance(right, _SEQUENCES)):
            return (yield self._repeat(left, right))
        if operator_text == "+" and isinstance(left, (str, bytes)) and type(left) is type(right):
            length = len(left) + len(right)
            if length > limits.MAX_VALUE:
                return (yield self.bulk(_OPERATORS["+"](left, right)[: limits.MAX_PYTHON_TEXT], length))
        if isinstance(left, int) and isinstance(right, int):
            _check_bits(operator_text, left, right)
        result = _OPERATORS[operator_text](left, right)
        if isinstance(result, (list, tuple)):
            yield self.check_size(result)
        return result

    def _operate_on_instances(self, operator_text: str, left: Value, right: Value) -> Code:
        name = _METHODS[operator_text]
        for receiver, other, method_name in ((left, right, f"__{name}__"), (right, left, f"__r{name}__")):
            method = self.find_method(receiver, method_name) if isinstance(receiver, Instance) else None
            if method is not None:
                result = yield self.call(method, [other])
                if result is not NotImplemented:
                    return result
        if operator_text == "%" and isinstance(left, str):
            return (yield self.format_percent(left, right))
        if operator_text == "|":
            return left
        raise _unsupported(operator_text, left, right)

    def _operate_on_bulk(self, operator_text: str, left: Value, right: Value) -> Code:
        bulk = left if isinstance(left, BulkText) else right
        other = right if bulk is left else left
        if operator_text == "*" and isinstance(other, int):
            return (yield self.bulk(bulk.unit, max(bulk.length * other, 0)))
        if operator_text == "+" and isinstance(other, (BulkText, type(bulk.unit))):
            length = bulk.length + (other.length if isinstance(other, BulkText) else len(other))
            return (yield self.bulk(bulk.unit, length))
        left = self.text_of_bulk(left) if isinstance(left, BulkText) else left
        right = self.text_of_bulk(right) if isinstance(right, BulkText) else right
        return (yield self.operate(operator_text, left, right))

    def _repeat(self, left: Value, right: Value) -> Code:
        sequence, count = (left, right) if isinstance(left, _SEQUENCES) else (right, left)
        if not isinstance(count, int):
            raise error("TypeError", f"can't multiply sequence by non-int of type '{type_name(count)}'")
        length = len(sequence) * max(count, 0)
        if isinstance(sequence, (list, tuple)):
            if length > limits.MAX_PYTHON_REPEATED:
                yield self.fill(8 * length)
                size = max(limits.MAX_PYTHON_REPEATED // max(len(sequence), 1), 1)
                return sequence * size
            return sequence * count
        if length <= limits.MAX_PYTHON_TEXT:
            return sequence * count
        unit = sequence[: limits.MAX_PYTHON_TEXT]
        return (yield self.bulk(unit, length))

    def compare(self, operator_text: str, left: Value, right: Value) -> Code:
        if isinstance(left, Instance) or isinstance(right, Instance):
            return (yield self._compare_instances(operator_text, left, right))
        if isinstance(left, BulkText) or isinstance(right, BulkText):
            if operator_text in ("==", "!=") and _length(left) != _length(right):
                return operator_text == "!="
            left = self.text_of_bulk(left) if isinstance(left, BulkText) else left
            right = self.text_of_bulk(right) if isinstance(right, BulkText) else right
        if operator_text in ("==", "!="):
            return (yield self._compare_equal(left, right)) is (operator_text == "==")
        if not (is_native(left) and is_native(right)):
            names = f"'{type_name(left)}' and '{type_name(right)}'"
            raise error("TypeError", f"'{operator_text}' not supported between instances of {names}")
        if (
            isinstance(left, (list, tuple))
            and type(left) is type(right)
            and not (is_plain(left) and is_plain(right))
        ):
            return (yield self._compare_sequences(operator_text, left, right))
        return _COMPARISONS[operator_text](left, right)

    def _compare_equal(self, left: Value, right: Value) -> Code:
        if left is right:
            return True
        if (
            isinstance(left, (list, tuple))
            and type(left) is type(right)
            and not (is_plain(left) and is_plain(right))
        ):
            if len(left) != len(right):
                return False
            for one, other in zip(left, right, strict=True):
                if not (yield self.compare("==", one, other)):
                    return False
            return True
        if not (is_native(left) and is_native(right)):
            return isinstance(left, NativeObject) and left.members is getattr(right, "members", None)
        return left == right

    def _compare_sequences(self, operator_text: str, left: Value, right: Value) -> Code:
        for one, other in zip(left, right, strict=False):
            if not (yield self.compare("==", one, other)):
                return (yield self.compare(operator_text, one, other))
        return _COMPARISONS[operator_text](len(left), len(right))

    def _compare_instances(self, operator_text: str, left: Value, right: Value) -> Code:
        names = _COMPARISON_METHODS[operator_text]
        for receiver, other, name in ((left, right, names[0]), (right, left, names[1])):
            method = self.find_method(receiver, name) if isinstance(receiver, Instance) else None
            if method is not None:
                result = yield self.call(method, [other])
                if result is not NotImplemented:
                    return result
        if operator_text == "==":
            return left is right
        if operator_text == "!=":
            return not (yield self.truth((yield self.compare("==", left, right))))
        name = f"'{type_name(left)}' and '{type_name(right)}'"
        raise error("TypeError", f"'{operator_text}' not supported between instances of {name}")

    def contains(self, container: Value, item: Value) -> Code:
        if isinstance(container, BulkText):
            container = self.text_of_bulk(container)
        if isinstance(container, Instance):
            method = self.find_method(container, "__contains__")
            if method is not None:
                return (yield self.truth((yield self.call(method, [item]))))
        elif isinstance(container, range):
            return isinstance(item, (int, float)) and item == int(item) and int(item) in container
        elif isinstance(container, (str, bytes, dict, set, frozenset)) or (
            is_native(container) and is_native(item) and not isinstance(item, (list, tuple, dict))
        ):
            if isinstance(container, str) and not isinstance(item, str):
                name = type_name(item)
                raise error("TypeError", f"'in <string>' requires string as left operand, not {name}")
            return item in container
        elif (
            not is_native(container)
            and not hasattr(container, "step")
            and not hasattr(container, "execution")
        ):
            raise error("TypeError", f"argument of type '{type_name(container)}' is not iterable")
        for other in (yield self.collect(container)):
            if (yield self.compare("==", other, item)):
                return True
        return False

    def truth(self, value: Value) -> Code:
        if isinstance(value, Instance):
            for name in ("__bool__", "__len__"):
                method = self.find_method(value, name)
                if method is not None:
                    return bool((yield self.call(method, [])))
            return True
        return value.length > 0 if isinstance(value, BulkText) else (not is_native(value)) or bool(value)

    def order(self, values: list[Value], key: Value, *, is_reversed: bool) -> Code:
        """Return sorted values."""
        keys = values
        if key is not None:
            keys = []
            for value in values:
                keys.append((yield self.call(key, [value])))
        if all(map(is_plain, keys)):
            indexes = sorted(range(len(keys)), key=keys.__getitem__, reverse=is_reversed)
            return [values[index] for index in indexes]
        pairs = list(zip(keys, values, strict=True))
        ordered = yield self._merge_sort(pairs[::-1] if is_reversed else pairs)
        ordered = ordered[::-1] if is_reversed else ordered
        return [value for _, value in ordered]

    def _merge_sort(self, pairs: list[tuple[Value, Value]]) -> Code:
        if len(pairs) < 2:
            return pairs
        middle = len(pairs) // 2
        left = yield self._merge_sort(pairs[:middle])
        right = yield self._merge_sort(pairs[middle:])
        merged: list[tuple[Value, Value]] = []
        while left and right:
            is_less = yield self.truth((yield self.compare("<", right[0][0], left[0][0])))
            merged.append((right if is_less else left).pop(0))
        return merged + left + right

    def format_percent(self, text: str, values: Value) -> Code:
        raise NotImplementedError


def _unsupported(operator_text: str, left: Value, right: Value) -> PythonError:
    symbol = "** or pow()" if operator_text == "**" else operator_text
    names = f"'{type_name(left)}' and '{type_name(right)}'"
    return error("TypeError", f"unsupported operand type(s) for {symbol}: {names}")


def _check_bits(operator_text: str, left: int, right: int) -> None:
    """Refuse an operation whose result would take too much time and memory."""
    bits = 0
    if operator_text == "**":
        bits = left.bit_length() * max(right, 0) if left not in (0, 1, -1) else 0
    elif operator_text == "<<":
        bits = left.bit_length() + max(right, 0) if left else 0
    elif operator_text == "*":
        bits = left.bit_length() + right.bit_length()
    if bits > _MAX_BITS:
        raise error("MemoryError")


def _length(value: Value) -> int:
    if isinstance(value, BulkText):
        return value.length
    return len(value) if hasattr(value, "__len__") else -1
