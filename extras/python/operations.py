"""The operators of simulated Python scripts, on values whose sizes are checked before anything is computed."""

import operator
from collections import deque
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone
from itertools import islice
from typing import Any, Final

from . import costs, limits
from .errors import PythonError, error
from .machine import Machine
from .values import (
    END,
    BulkText,
    Code,
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
_SORTED_AT_ONCE: Final = 5_000
_MAX_SORTED: Final = 300_000
_COMPARED_AT_ONCE: Final = 1_000
_KEYS: Final[Any] = type({}.keys())
_VIEWS: Final[tuple[Any, ...]] = (_KEYS, type({}.items()))


def is_native(value: Value) -> bool:
    return isinstance(value, NATIVE)


class Operations(Machine):
    """The part of the interpreter that computes."""

    def operate(self, operator_text: str, left: Value, right: Value) -> Code:  # noqa: C901, PLR0912 - a case for each kind of value
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
        if costs.is_small(left) and costs.is_small(right) and operator_text not in ("*", "**", "<<", "%"):
            return _OPERATORS[operator_text](left, right)
        if operator_text == "*" and (isinstance(left, _SEQUENCES) or isinstance(right, _SEQUENCES)):
            return (yield self._repeat(left, right))
        if operator_text == "+" and isinstance(left, costs.TEXTS) and type(left) is type(right):
            length = len(left) + len(right)
            if length > limits.MAX_STORED:
                return (yield self.bulk(left[: limits.MAX_TEXT], length, is_exact=False))
        if operator_text == "%" and isinstance(left, (bytes, bytearray)):
            self.refuse_feature("the operator % of Python for bytes")
        if isinstance(left, _VIEWS) or isinstance(right, _VIEWS):
            left, right = (yield self._as_set(left)), (yield self._as_set(right))
        if isinstance(left, int) and isinstance(right, int):
            self._check_number(operator_text, left, right)
        elif operator_text == "+" and isinstance(left, (list, tuple)) and type(left) is type(right):
            yield self.check_size(len(left) + len(right))
        self.charge(costs.operation(operator_text, left, right))
        return _OPERATORS[operator_text](left, right)

    def _as_set(self, value: Value) -> Code:
        """Return the keys of a dictionary, or what is computed with them, as a set."""
        return {self.key(item) for item in (yield self.collect(value))}

    def _check_number(self, operator_text: str, left: int, right: int) -> None:
        """Refuse an operation whose result would take too much time and memory; charge a power."""
        bits = 0
        if operator_text == "**":
            bits = left.bit_length() * max(right, 0) if left not in (0, 1, -1) else 0
        elif operator_text == "<<":
            bits = left.bit_length() + max(right, 0) if left else 0
        elif operator_text == "*":
            bits = left.bit_length() + right.bit_length()
        if bits > limits.MAX_BITS:
            self.check_length(bits >> 3)
            self.refuse_feature(f"a number of {bits} bits in Python")
        if operator_text == "**" and bits:
            self.charge(2 * costs.product(1 << bits, 1 << bits))

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
            is_whole = bulk.is_exact and bulk.length % len(bulk.unit) == 0
            return (yield self.bulk(bulk.unit, max(bulk.length * other, 0), is_exact=is_whole))
        if operator_text == "+" and isinstance(other, (BulkText, type(bulk.unit))):
            unit, is_exact = other, False
            if isinstance(other, BulkText):
                unit = other.unit
                is_exact = bulk.is_exact and other.is_exact and left.length % len(left.unit) == 0
            length = bulk.length + (other.length if isinstance(other, BulkText) else len(other))
            if length <= limits.MAX_STORED and not isinstance(bulk.unit, list) and _is_known(left, right):
                texts = [
                    self.text_of_bulk(side) if isinstance(side, BulkText) else side for side in (left, right)
                ]
                return texts[0] + texts[1]
            return (yield self.bulk(bulk.unit, length, is_exact=is_exact and unit == bulk.unit))
        left = self.text_of_bulk(left) if isinstance(left, BulkText) else left
        right = self.text_of_bulk(right) if isinstance(right, BulkText) else right
        return (yield self.operate(operator_text, left, right))

    def _repeat(self, left: Value, right: Value) -> Code:
        sequence, count = (left, right) if isinstance(left, _SEQUENCES) else (right, left)
        if not isinstance(count, int):
            raise error("TypeError", f"can't multiply sequence by non-int of type '{type_name(count)}'")
        length = len(sequence) * max(count, 0)
        if isinstance(sequence, tuple):
            yield self.check_size(length)
        elif length > limits.MAX_ELEMENTS and isinstance(sequence, list):
            is_exact = len(sequence) <= limits.MAX_TEXT
            return (yield self.bulk(sequence[: limits.MAX_TEXT], length, is_exact=is_exact))
        if isinstance(sequence, (list, tuple)):
            self.charge(costs.ELEMENT * length)
            return sequence * count
        if length <= limits.MAX_TEXT:
            return sequence * count
        is_exact = len(sequence) <= limits.MAX_TEXT
        if not is_exact and length <= limits.MAX_STORED:
            self.charge(costs.CHARACTER * length)
            return sequence * count
        return (yield self.bulk(sequence[: limits.MAX_TEXT], length, is_exact=is_exact))

    def is_plain(self, value: Value) -> bool:
        """Return whether a value, and all in it, are numbers, texts and containers of bounded size; charge this visit, and another one."""
        if costs.is_small(value):
            return True
        cost, is_plain = costs.plain(value, is_native)
        self.charge(2 * cost if is_plain else cost)
        return is_plain

    def compare(self, operator_text: str, left: Value, right: Value) -> Code:
        if costs.is_atom(left) and costs.is_atom(right):
            self.charge(min(costs.size(left), costs.size(right)) * costs.CHARACTER)
            return _COMPARISONS[operator_text](left, right)
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
        if self.is_plain(left) and self.is_plain(right):
            return _COMPARISONS[operator_text](left, right)
        if isinstance(left, (list, tuple, deque)) and type(left) is type(right):
            with self.nest():
                return (yield self._compare_sequences(operator_text, left, right))
        self.charge(costs.operation("-", left, right))
        return _COMPARISONS[operator_text](left, right)

    def _compare_equal(self, left: Value, right: Value) -> Code:
        if left is right:
            return True
        if not (is_native(left) and is_native(right)):
            return isinstance(left, NativeObject) and left.members is getattr(right, "members", None)
        if self.is_plain(left) and self.is_plain(right):
            return left == right
        is_sequence = isinstance(left, (list, tuple, deque)) and type(left) is type(right)
        is_mapping = isinstance(left, dict) and isinstance(right, dict)
        if not (is_sequence or is_mapping):
            self.charge(costs.operation("-", left, right))
            return left == right
        if len(left) != len(right):
            return False
        with self.nest():
            for index, one in enumerate(left):
                if is_mapping and one not in right:
                    return False
                item, other = (left[one], right[one]) if is_mapping else (one, right[index])
                if item is not other and not (yield self.truth((yield self.compare("==", item, other)))):
                    return False
        return True

    def _compare_sequences(self, operator_text: str, left: Value, right: Value) -> Code:
        for one, other in zip(left, right, strict=False):
            if one is not other and not (yield self.truth((yield self.compare("==", one, other)))):
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

    def contains(self, container: Value, item: Value) -> Code:  # noqa: C901 - a case for each kind of value
        if isinstance(container, BulkText):
            container = self.text_of_bulk(container)
        if isinstance(container, Instance):
            method = self.find_method(container, "__contains__")
            if method is not None:
                return (yield self.truth((yield self.call(method, [item]))))
        elif isinstance(container, range):
            return isinstance(item, (int, float)) and item == int(item) and int(item) in container
        elif isinstance(container, costs.TEXTS):
            if isinstance(container, str) and not isinstance(item, str):
                name = type_name(item)
                raise error("TypeError", f"'in <string>' requires string as left operand, not {name}")
            self.charge(costs.search(len(container), costs.size(item)))
            return item in container
        elif isinstance(container, (dict, set, frozenset, _KEYS)):
            return self.key(item) in container
        elif isinstance(container, (list, tuple, deque)):
            return (yield self.position(container, item)) is not None
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

    def position(self, values: Value, item: Value, start: int = 0) -> Code:
        """Return the index of a value in a list or the like; None if it is not there."""
        if not costs.is_atom(item):
            for index in range(start, len(values)):
                value = values[index] if index < len(values) else END
                if value is item or (yield self.truth((yield self.compare("==", value, item)))):
                    return index
            return None
        for index in range(start, len(values), _COMPARED_AT_ONCE):
            end = index + _COMPARED_AT_ONCE
            part = list(islice(values, index, end)) if isinstance(values, deque) else values[index:end]
            self.charge(costs.NODE * len(part) + (costs.ELEMENT * end if isinstance(values, deque) else 0))
            yield self.pause()
            if not all(map(costs.is_atom, part)):
                for offset, value in enumerate(part):
                    if value is item or (yield self.truth((yield self.compare("==", value, item)))):
                        return index + offset
                continue
            same = (
                sum(costs.size(value) == costs.size(item) for value in part) if costs.size(item) >= 64 else 0
            )
            self.charge(same * costs.size(item))
            if item in part:
                return index + part.index(item)
        return None

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
        if len(keys) <= _MAX_SORTED and (yield self._is_quickly_sorted(keys)):
            return (yield self._sort_runs(keys, values, is_reversed=is_reversed))
        pairs = list(zip(keys, values, strict=True))
        ordered = yield self._merge_sort(pairs[::-1] if is_reversed else pairs)
        ordered = ordered[::-1] if is_reversed else ordered
        return [value for _, value in ordered]

    def _is_quickly_sorted(self, keys: list[Value]) -> Code:
        """Return whether all keys are short, and none is compared by the script."""
        for start in range(0, len(keys), _COMPARED_AT_ONCE):
            part = keys[start : start + _COMPARED_AT_ONCE]
            self.charge(costs.NODE * len(part))
            yield self.pause()
            if not all(map(costs.is_short_key, part)):
                return False
        return True

    def _sort_runs(self, keys: list[Value], values: list[Value], *, is_reversed: bool) -> Code:
        """Sort parts, and merge them: Python merges what is sorted already in linear time."""
        runs: list[list[int]] = []
        for start in range(0, len(keys), _SORTED_AT_ONCE):
            part = range(start, min(start + _SORTED_AT_ONCE, len(keys)))
            self.charge(20 * costs.NODE * len(part))
            yield self.pause()
            runs.append(sorted(part, key=keys.__getitem__, reverse=is_reversed))
        while len(runs) > 1:
            merged = []
            for start in range(0, len(runs), 2):
                joined = [*runs[start], *(runs[start + 1] if start + 1 < len(runs) else ())]
                self.charge(0.6 * costs.NODE * len(joined))
                yield self.pause()
                merged.append(sorted(joined, key=keys.__getitem__, reverse=is_reversed))
            runs = merged
        return [values[index] for index in runs[0]] if runs else []

    def _merge_sort(self, pairs: list[tuple[Value, Value]]) -> Code:
        if len(pairs) < 2:
            return pairs
        middle = len(pairs) // 2
        self.charge(costs.ELEMENT * len(pairs))
        left = yield self._merge_sort(pairs[:middle])
        right = yield self._merge_sort(pairs[middle:])
        merged: list[tuple[Value, Value]] = []
        first = second = 0
        while first < len(left) and second < len(right):
            is_less = yield self.truth((yield self.compare("<", right[second][0], left[first][0])))
            merged.append(right[second] if is_less else left[first])
            first, second = first + (not is_less), second + bool(is_less)
        return merged + left[first:] + right[second:]

    def format_percent(self, text: str, values: Value) -> Code:
        raise NotImplementedError


def _unsupported(operator_text: str, left: Value, right: Value) -> PythonError:
    symbol = "** or pow()" if operator_text == "**" else operator_text
    names = f"'{type_name(left)}' and '{type_name(right)}'"
    return error("TypeError", f"unsupported operand type(s) for {symbol}: {names}")


def _is_known(*values: Value) -> bool:
    return all(not isinstance(value, BulkText) or value.is_exact for value in values)


def _length(value: Value) -> int:
    if isinstance(value, BulkText):
        return value.length
    return len(value) if hasattr(value, "__len__") else -1
