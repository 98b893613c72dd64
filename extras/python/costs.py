"""What operations of simulated Python scripts on native values cost, in nanoseconds: a little more than they take, known before they run.

The attack: one call of a function that is written in C, such as a search in a long text, a product of large numbers or a sort, cannot be divided,
and stops the event loop for as long as it takes. So each is charged first, see `Machine.charge`. The prices are for the worst case of a kind of
operation, not for the usual one: what the usual case would take and the worst would not is refused.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime, timedelta
from math import inf
from sys import hash_info
from typing import Any, Final

from . import limits
from .values import DefaultDict, Value

NODE: Final = 100
"""A value that is visited."""
ELEMENT: Final = 10
"""An element of a list that is copied."""
ENTRY: Final = 100
"""An entry of a dictionary or a set that is copied."""
CHARACTER: Final = 4
"""A character of a text that is copied or compared."""
CONVERTED: Final = 30
"""A character that is changed, or that becomes a piece of a text."""
CALLED: Final = 200
"""A character of an argument of a function of the library."""
MAX_NODES: Final = 5_000
"""The values in a container that is compared, printed or hashed at once."""
_MAX_DEPTH: Final = 100
"""The depth of such a container: some of these operations nest on the stack."""
_MAX_CHARACTERS: Final = 1 << 20
_DIGIT: Final = 30
"""The bits of a digit of a large number."""
_SMALL_TEXT: Final = 2_500
"""Up to this length, and for long needles up to the next one, Python searches with an algorithm whose worst case is a product."""
_MIDDLE_TEXT: Final = 30_000
TEXTS: Final = (str, bytes, bytearray)
_SETS: Final[Any] = (set, frozenset, type({}.keys()), type({}.items()))
_KEYED: Final[Any] = (*_SETS, list, tuple)
_MAPPINGS: Final[Any] = (dict, *_SETS)
_ENTRIES: Final[Any] = (*_KEYED, dict)
_ATOMS: Final = frozenset([int, float, bool, type(None), str, bytes, complex])


def size(value: Value) -> int:
    """Return the characters, bytes or elements of a value, and the bytes of a number."""
    if isinstance(value, int):
        return value.bit_length() >> 3
    return len(value) if hasattr(value, "__len__") and not isinstance(value, range) else 0


def size_of_number(value: Value) -> int:
    """Return how much a number asks for; 0 for other values."""
    return value if isinstance(value, int) else 0


def is_small(value: Value) -> bool:
    """Return whether each operation on a value takes constant time."""
    kind = type(value)
    return kind in _ATOMS and (kind is float or kind is bool or value is None or size(value) < 64)


def is_atom(value: Value) -> bool:
    """Return whether a value is a number or a text, which takes constant time to compare with a small value."""
    return type(value) in _ATOMS


def is_short_key(value: Value) -> bool:
    """Return whether a key by which values are sorted is compared in short time."""
    if isinstance(value, (tuple, list)):
        return len(value) <= 8 and all(map(is_small, value))
    return is_small(value) or isinstance(value, (datetime, date, timedelta))


def plain(value: Value, is_native: Callable[[Value], bool]) -> tuple[float, bool]:
    """Return what a visit of a value and all in it costs, and whether there are only numbers, texts and containers, and not too many."""
    level, count, characters = [value], 1, 0
    for _ in range(_MAX_DEPTH):
        following: list[Value] = []
        for item in level:
            if type(item) in _ATOMS:
                characters += size(item)
                continue
            if isinstance(item, DefaultDict) or not is_native(item):
                return float(NODE * count), False
            if isinstance(item, _CONTAINERS):
                count += len(item)
                if count > MAX_NODES:
                    return float(NODE * (count - len(item))), False
                if isinstance(item, dict):
                    following += item.keys()
                    following += item.values()
                else:
                    following += item
            else:
                characters += size(item)
        if characters > _MAX_CHARACTERS:
            break
        if not following:
            return float(NODE * count + CHARACTER * characters), True
        level = following
    return float(NODE * count), False


_CONTAINERS: Final[Any] = (
    list,
    tuple,
    set,
    frozenset,
    deque,
    dict,
    type({}.keys()),
    type({}.values()),
    type({}.items()),
)


def has_distinct_hash(value: Value) -> bool:
    """Return whether a key takes constant time, and nobody can find many others with its hash."""
    kind = type(value)
    if kind is int:
        return bool(-hash_info.modulus < value < hash_info.modulus)
    return kind in (str, bool, float, bytes) or value is None


def of_keys(values: Collection[Value]) -> float:
    """Return what an operation on the elements of sets costs, whose hashes are known, but which may be compared."""
    cost = float(ENTRY * len(values))
    if cost > limits.MAX_WORK or _ATOMS.issuperset(map(type, values)):
        return cost
    if len(values) > MAX_NODES:
        return inf
    return cost + sum(CALLED if is_short_key(value) else NODE * MAX_NODES for value in values)


# --- numbers


def digits(number: int) -> int:
    return number.bit_length() // _DIGIT + 1


def product(left: int, right: int) -> float:
    small, large = sorted((digits(left), digits(right)))
    return float(3 * large * small**0.6)


def division(left: int, right: int) -> float:
    divisor = digits(right)
    return 1.5 * divisor * max(digits(left) - divisor + 1, 1)


def modular_power(exponent: int, modulus: int) -> float:
    return 3.0 * exponent.bit_length() * digits(modulus) ** 2


# --- operators


def operation(operator: str, left: Value, right: Value) -> float:
    """Return what an operator of two native values costs, except for a power and a repetition, whose results say it."""
    if isinstance(left, int) and isinstance(right, int):
        if operator == "*":
            return product(left, right)
        return division(left, right) if operator in ("//", "%", "/") else float(size(left) + size(right))
    if isinstance(left, Counter) or isinstance(right, Counter):
        return 5.0 * ENTRY * (size(left) + size(right))
    if isinstance(left, _SETS) or isinstance(right, _SETS):
        return sum(of_keys(value) for value in (left, right) if isinstance(value, _KEYED))
    price = (
        ENTRY if isinstance(left, dict) else ELEMENT if isinstance(left, (list, tuple, deque)) else CHARACTER
    )
    return float(price * (size(left) + size(right)))


# --- methods


def search(length: int, needle: int, *, is_reversed: bool = False) -> float:
    """Return what the search of a text in another one costs in the worst case."""
    if needle <= 1:
        return float(length)
    is_product = is_reversed or length < _SMALL_TEXT or (needle >= 100 and length < _MIDDLE_TEXT)
    if is_product:
        return float(max(length - needle + 1, 1) * min(needle, length))
    return float(length * (10 + min(needle, 6)))


def method(name: str, receiver: Value, values: list[Value]) -> float:
    """Return what a method of a native value with these arguments costs, besides what its result does."""
    if isinstance(receiver, TEXTS):
        return _text_method(name, receiver, values)
    if isinstance(receiver, (list, tuple, deque)):
        if name in ("append", "appendleft", "pop", "popleft", "clear"):
            return float(len(receiver) if name == "clear" or values else 0)
        return float(ELEMENT * (len(receiver) + sum(map(size, values))))
    if isinstance(receiver, _MAPPINGS):
        if name in _OF_ONE_KEY:
            return float(size(values[1]) if len(values) > 1 else 0)
        price = 5.0 * ENTRY if isinstance(receiver, Counter) else float(ENTRY)
        others = sum(of_keys(value) for value in values if isinstance(value, _ENTRIES))
        keys = of_keys(receiver) if isinstance(receiver, _SETS) and values else price * len(receiver)
        return 0.0 if name in ("keys", "values", "items") else keys + others
    return float(NODE + CALLED * sum(map(size, values)) + size(receiver))


_OF_ONE_KEY: Final = frozenset(
    ["add", "discard", "remove", "get", "pop", "popitem", "setdefault", "move_to_end"]
)
_SEARCHES: Final = frozenset(
    ["find", "rfind", "index", "rindex", "count", "replace", "split", "rsplit", "partition", "rpartition"]
)
_CONSTANT: Final = frozenset(
    ["startswith", "endswith", "removeprefix", "removesuffix", "append", "pop", "isascii"]
)


def _text_method(name: str, receiver: Any, values: list[Value]) -> float:
    length = len(receiver)
    needle = values[0] if values else None
    needles = sum(size(item) + ELEMENT for item in needle) if isinstance(needle, tuple) else size(needle)
    if name in _CONSTANT:
        return float(needles)
    if name in _SEARCHES and isinstance(needle, TEXTS):
        cost = search(length, len(needle), is_reversed=name.startswith("r") and name != "replace")
        is_split = name in ("split", "rsplit")
        return cost + (NODE * receiver.count(needle) if is_split and needle else CHARACTER * length)
    if name in _SEARCHES and needle is None:
        return float(CONVERTED * length)
    if name in ("strip", "lstrip", "rstrip"):
        return float(CHARACTER * length * (1 + needles))
    if name in ("join", "center", "ljust", "rjust", "zfill", "hex"):
        return float(CHARACTER * length)
    return float(CONVERTED * length)


def result_length(name: str, receiver: Any, values: list[Value], keywords: Mapping[str, Value]) -> int:
    """Return the greatest length of a text that a method returns."""
    length = len(receiver)
    number = next((value for value in (*values[:1], *keywords.values()) if isinstance(value, int)), 0)
    if name in ("center", "ljust", "rjust", "zfill"):
        return max(number, length)
    if name == "expandtabs":
        return length + int(receiver.count("\t" if isinstance(receiver, str) else b"\t")) * (number or 8)
    if name == "replace" and len(values) > 1 and all(isinstance(value, TEXTS) for value in values[:2]):
        return length + int(receiver.count(values[0])) * max(len(values[1]) - len(values[0]), 0)
    if name == "join" and isinstance(values[0], list):
        if len(values[0]) * ENTRY > limits.MAX_WORK:
            return limits.MAX_STORED + 1
        return sum(len(part) for part in values[0] if isinstance(part, TEXTS)) + length * len(values[0])
    if name == "translate" and isinstance(receiver, str) and isinstance(values[0], dict):
        return length * max((len(text) for text in values[0].values() if isinstance(text, str)), default=1)
    return length
