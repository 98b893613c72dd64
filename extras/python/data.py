"""The modules of simulated Python scripts for data: json, math, collections, itertools, functools, string, hashlib and others."""

import base64
import hashlib
import itertools
import json  # noqa: TID251 - its output is what scripts print
import math
import string
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Any, Final

from . import costs
from .builtins import Keywords
from .clocks import plain
from .errors import ERRORS, error
from .interpreter import PythonInterpreter
from .values import (
    END,
    Builtin,
    BulkText,
    Code,
    DefaultDict,
    ErrorInstance,
    Function,
    Instance,
    Iterator,
    NativeObject,
    NativeType,
    Value,
    type_name,
)

_MAX_FACTORIAL: Final = 5_000
_MAX_INDENT: Final = 64
_HASHED_AT_ONCE: Final = 1 << 18
_MAX_POOLS: Final = 100
_MATH: Final = (
    "acos asin atan atan2 ceil copysign cos cosh degrees exp fabs floor fmod fsum gcd hypot isclose isfinite isinf isnan "
    "isqrt ldexp log log10 log1p log2 modf radians sin sinh sqrt tan tanh trunc"
)


# --- json


def json_module(machine: PythonInterpreter) -> dict[str, Value]:
    def loads(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Value:
        text = machine.text_of_bulk(arguments[0]) if isinstance(arguments[0], BulkText) else arguments[0]
        if not isinstance(text, (str, bytes, bytearray)):
            raise error(
                "TypeError", f"the JSON object must be str, bytes or bytearray, not {type_name(text)}"
            )
        machine.charge(costs.CONVERTED * costs.size(text))
        return json.loads(text)

    def dump(_: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Code:
        text = yield dump_text(machine, arguments[:1], keywords)
        yield machine.call((yield machine.attribute(arguments[1], "write")), [text])
        return None

    def load(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Code:
        return loads(machine, [(yield machine.call((yield machine.attribute(arguments[0], "read")), []))], {})

    return {
        "dumps": Builtin("dumps", lambda _, arguments, keywords: dump_text(machine, arguments, keywords)),
        "loads": Builtin("loads", loads), "dump": Builtin("dump", dump), "load": Builtin("load", load),
        "JSONDecodeError": ERRORS["JSONDecodeError"],
    }  # fmt: skip


def dump_text(machine: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Code:
    writer = _JsonWriter(machine, keywords)
    yield writer.write(arguments[0], "\n")
    return "".join(writer.parts)


class _JsonWriter:
    """Writes a value as JSON, part by part."""

    def __init__(self, machine: PythonInterpreter, options: Keywords) -> None:
        self._machine = machine
        self._default = options.get("default")
        self._is_sorted = bool(options.get("sort_keys"))
        self._is_ascii = bool(options.get("ensure_ascii", True))
        indent = options.get("indent")
        self._indent = " " * min(indent, _MAX_INDENT) if isinstance(indent, int) else indent
        separators = options.get("separators") or ("," if indent is not None else ", ", ": ")
        self._comma: str = separators[0]
        self._colon: str = separators[1]
        self._path: set[int] = set()
        self._length = 0
        self.parts: list[str] = []

    def _add(self, text: str) -> None:
        self._length += len(text)
        self._machine.check_length(self._length)
        self._machine.charge(costs.CHARACTER * len(text))
        self.parts.append(text)

    def _scalar(self, value: Value) -> str:
        self._machine.charge(costs.CONVERTED * costs.size(value))
        return json.dumps(value, ensure_ascii=self._is_ascii)

    def write(self, value: Value, line: str) -> Code:
        """`line` is the end of a line with the indentation of the value."""
        if isinstance(value, BulkText):
            value = self._machine.text_of_bulk(value)
        if value is None or isinstance(value, (bool, int, float, str)):
            self._add(self._scalar(value))
            return None
        if id(value) in self._path:
            raise error("ValueError", "Circular reference detected")
        with self._machine.nest():
            self._path.add(id(value))
            yield self._container(value, line)
            self._path.remove(id(value))
        return None

    def _container(self, value: Value, line: str) -> Code:
        if not isinstance(value, (dict, list, tuple)):
            if self._default is None:
                name = type_name(value).rpartition(".")[2]
                raise error("TypeError", f"Object of type {name} is not JSON serializable")
            yield self.write((yield self._machine.call(self._default, [value])), line)
            return None
        is_mapping = isinstance(value, dict)
        items: Any = value
        if is_mapping:
            items = (
                (yield self._machine.order(list(value), None, is_reversed=False))
                if self._is_sorted
                else list(value)
            )
            self._machine.charge(costs.ELEMENT * len(value))
        opening, closing = "{}" if is_mapping else "[]"
        if not items:
            self._add(opening + closing)
            return None
        inner = line if self._indent is None else line + self._indent
        start = "" if self._indent is None else inner
        self._add(opening + start)
        for index, item in enumerate(items):
            if index:
                self._add(self._comma + start)
            if is_mapping:
                self._add(self._key(item) + self._colon)
            yield self.write(value[item] if is_mapping else item, inner)
        self._add(("" if self._indent is None else line) + closing)
        return None

    def _key(self, key: Value) -> str:
        if isinstance(key, str):
            return self._scalar(key)
        if not isinstance(key, (int, float, bool, type(None))):
            raise error("TypeError", f"keys must be str, int, float, bool or None, not {type_name(key)}")
        return f'"{self._scalar(key)}"'


# --- numbers


def math_module(machine: PythonInterpreter) -> dict[str, Value]:
    def factorial(number: int) -> int:
        if number > _MAX_FACTORIAL:
            machine.refuse_feature(
                f"Python's math.factorial({number})" if number < 1 << 63 else "Python's math.factorial()"
            )
        machine.charge(costs.CALLED * number)
        return math.factorial(number)

    members: dict[str, Value] = {
        name: plain(name, getattr(math, name)) for name in _MATH.split()
    }  # from the whitelist
    return members | {
        "pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan, "tau": math.tau, "factorial": plain("factorial", factorial),
        "pow": plain("pow", math.pow),
    }  # fmt: skip


def hashlib_module(machine: PythonInterpreter) -> dict[str, Value]:
    def make(name: str) -> Builtin:
        def call(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Code:
            digest = hashlib.new(name, usedforsecurity=False)

            def update(_: PythonInterpreter, data: list[Value], __: Keywords) -> Code:
                value = machine.text_of_bulk(data[0]) if isinstance(data[0], BulkText) else data[0]
                if not isinstance(value, (bytes, bytearray)):
                    raise error("TypeError", "Strings must be encoded before hashing")
                for start in range(0, len(value), _HASHED_AT_ONCE):
                    machine.charge(costs.CHARACTER * _HASHED_AT_ONCE)
                    digest.update(value[start : start + _HASHED_AT_ONCE])
                    yield machine.pause()

            if arguments:
                yield update(machine, arguments, {})
            return NativeObject({
                "hexdigest": plain("hexdigest", digest.hexdigest), "digest": plain("digest", digest.digest),
                "update": Builtin("update", update), "name": name,
            })  # fmt: skip

        return Builtin(name, call)

    return {name: make(name) for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")}


def base64_module(_: PythonInterpreter) -> dict[str, Value]:
    functions: dict[str, Callable[..., Any]] = {
        "b64encode": base64.b64encode, "b64decode": base64.b64decode,
        "urlsafe_b64encode": base64.urlsafe_b64encode, "urlsafe_b64decode": base64.urlsafe_b64decode,
    }  # fmt: skip
    return {name: plain(name, function) for name, function in functions.items()}


# --- containers


def collections_module(machine: PythonInterpreter) -> dict[str, Value]:
    def default_dict(_: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Code:
        result = DefaultDict((yield machine.call(machine.builtins["dict"], arguments[1:], keywords)))
        result.factory = arguments[0] if arguments else None
        return result

    def counter(_: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Code:
        if arguments and not isinstance(arguments[0], dict):
            counts: Counter[Value] = Counter()
            for value in (yield machine.collect(arguments[0])):
                machine.charge(costs.ENTRY)
                counts[machine.key(value)] += 1
                yield machine.pause()
            return counts
        machine.charge(5 * costs.ENTRY * sum(map(costs.size, arguments)))
        return Counter(*arguments, **keywords)

    def double_ended(_: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Code:
        values = (yield machine.collect(arguments[0])) if arguments else []
        return deque(values, keywords.get("maxlen", arguments[1] if len(arguments) > 1 else None))

    def ordered(_: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Code:
        return OrderedDict((yield machine.call(machine.builtins["dict"], arguments, keywords)))

    rows: dict[str, tuple[type, Callable[..., Any]]] = {
        "defaultdict": (DefaultDict, default_dict), "Counter": (Counter, counter), "deque": (deque, double_ended),
        "OrderedDict": (OrderedDict, ordered),
    }  # fmt: skip
    return {
        name: machine.register_type(NativeType(f"collections.{name}", host, call))
        for name, (host, call) in rows.items()
    } | {
        "namedtuple": Builtin(
            "namedtuple", lambda *_: machine.refuse_feature("Python's collections.namedtuple")
        )
    }


def itertools_module(machine: PythonInterpreter) -> dict[str, Value]:  # noqa: C901 - one function for each of the module
    def count(_: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Any:
        return itertools.count(*arguments, **keywords)

    def cycle(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Code:
        return itertools.cycle((yield machine.collect(arguments[0])))

    def chain(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Code:
        values: list[Value] = []
        for argument in arguments:
            values += yield machine.collect(argument)
        return iter(values)

    def slice_of(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Code:
        iterator = yield machine.iterate(arguments[0])
        bounds = [0, arguments[1], 1] if len(arguments) == 2 else [*arguments[1:], 1][:3]
        targets = iter(range(bounds[0] or 0, bounds[1] if bounds[1] is not None else 2**62, bounds[2] or 1))
        position = [0]

        def step() -> Code:
            target = next(targets, None)
            if target is None:
                return END
            item: Value = END
            while position[0] <= target:
                item = yield machine.advance(iterator)
                position[0] += 1
                if item is END:
                    break
            return item

        return Iterator("islice", step)

    def product(_: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Code:
        lists: list[Value] = []
        for argument in arguments:
            lists.append((yield machine.collect(argument)))
        repeat = keywords.get("repeat", 1)
        if not isinstance(repeat, int) or len(lists) * repeat > _MAX_POOLS:
            machine.refuse_feature("Python's itertools.product() of so many iterables")
        machine.charge(costs.ELEMENT * sum(map(len, lists)) * repeat)
        return itertools.product(*lists, repeat=repeat)

    def repeat(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Any:
        return itertools.repeat(*arguments)

    functions = {
        "count": count,
        "cycle": cycle,
        "chain": chain,
        "islice": slice_of,
        "product": product,
        "repeat": repeat,
    }
    return {name: Builtin(name, function) for name, function in functions.items()}


def functools_module(machine: PythonInterpreter) -> dict[str, Value]:  # noqa: C901 - as above
    def partial(_: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Builtin:
        function, *first = arguments

        def call(machine: PythonInterpreter, others: list[Value], more: Keywords) -> Code:
            machine.charge(costs.ELEMENT * (len(first) + len(others)) + costs.ENTRY * len(keywords | more))
            return machine.call(function, [*first, *others], keywords | more)

        return Builtin("partial", call)

    def wraps(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Builtin:
        def decorate(_: PythonInterpreter, inner: list[Value], __: Keywords) -> Value:
            if isinstance(inner[0], Function) and isinstance(arguments[0], (Function, Builtin)):
                inner[0].fields["__name__"] = arguments[0].name
            return inner[0]

        return Builtin("wraps", decorate)

    def reduce(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Code:
        values = yield machine.collect(arguments[1])
        values = [*arguments[2:], *values]
        if not values:
            raise error("TypeError", "reduce() of empty iterable with no initial value")
        total = values[0]
        for value in values[1:]:
            total = yield machine.call(arguments[0], [total, value])
        return total

    def cache(_: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Builtin:
        if not arguments or not isinstance(arguments[0], (Function, Builtin)):
            return Builtin("lru_cache", lambda machine, inner, _: cache(machine, inner, {}))
        results: dict[Value, Value] = {}
        del keywords

        def call(machine: PythonInterpreter, values: list[Value], names: Keywords) -> Code:
            key = machine.key((*values, *sorted(names.items())))
            if key not in results:
                results[key] = yield machine.call(arguments[0], values, names)
            return results[key]

        return Builtin(arguments[0].name, call)

    functions = {"partial": partial, "wraps": wraps, "reduce": reduce, "lru_cache": cache, "cache": cache}
    return {name: Builtin(name, function) for name, function in functions.items()}


def string_module(_: PythonInterpreter) -> dict[str, Value]:
    names = "ascii_letters ascii_lowercase ascii_uppercase digits hexdigits octdigits punctuation whitespace printable"
    return {name: getattr(string, name) for name in names.split()}  # from the whitelist


def copy_module(machine: PythonInterpreter) -> dict[str, Value]:
    def shallow(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Value:
        return _copy_of(machine, arguments[0])

    def deep(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Code:
        return (yield _deep_copy(machine, arguments[0], {}))

    return {"copy": Builtin("copy", shallow), "deepcopy": Builtin("deepcopy", deep)}


def _copy_of(machine: PythonInterpreter, value: Value) -> Value:
    if isinstance(value, Instance):
        copied = Instance(value.cls)
        copied.fields = dict(value.fields)
        return copied
    if not isinstance(value, (list, dict, set, deque)):
        return value
    machine.charge(costs.ENTRY * len(value))
    copied_value = value.copy()
    if isinstance(value, DefaultDict):
        copied_value = DefaultDict(value)
        copied_value.factory = value.factory
    return copied_value


def _deep_copy(machine: PythonInterpreter, value: Value, copies: dict[int, Value]) -> Code:
    """Copy a value and all in it; `copies` are those that exist already, by the ids of their originals."""
    if id(value) in copies:
        return copies[id(value)]
    with machine.nest():
        if isinstance(value, tuple):
            items: list[Value] = []
            for item in value:
                items.append((yield _deep_copy(machine, item, copies)))
            return copies.setdefault(id(value), tuple(items))
        copied = copies[id(value)] = _copy_of(machine, value)
        if isinstance(value, (list, deque)):
            for index, item in enumerate(list(value)):
                copied[index] = yield _deep_copy(machine, item, copies)
        elif isinstance(value, (dict, Instance)):
            fields, target = (value.fields, copied.fields) if isinstance(value, Instance) else (value, copied)
            for key, item in list(fields.items()):
                target[key] = yield _deep_copy(machine, item, copies)
    return copied


def traceback_module(machine: PythonInterpreter) -> dict[str, Value]:
    def current() -> ErrorInstance | None:
        return machine.handled

    def formatted(*_: Any) -> Code:
        value = current()
        return "NoneType: None\n" if value is None else (yield machine.traceback(value))

    def show(_: PythonInterpreter, __: list[Value], keywords: Keywords) -> Code:
        text = yield formatted()
        target = keywords.get("file")
        if target is None:
            yield machine.write(2, text)
        else:
            yield machine.call((yield machine.attribute(target, "write")), [text])
        return None

    def of_error(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Code:
        return (yield machine.traceback(arguments[0] if len(arguments) == 1 else arguments[1])).splitlines(
            keepends=True
        )

    return {
        "format_exc": Builtin("format_exc", formatted), "print_exc": Builtin("print_exc", show),
        "format_exception": Builtin("format_exception", of_error),
    }  # fmt: skip


def empty_module(_: PythonInterpreter) -> dict[str, Value]:
    return {}


def typing_module(_: PythonInterpreter) -> dict[str, Value]:
    names = "Any Callable ClassVar Dict Final Generator Iterable Iterator List Literal Mapping Optional Sequence Set Tuple Type Union"
    anything = NativeObject()
    anything.members["__getitem__"] = Builtin("__getitem__", lambda *_: anything)
    return dict.fromkeys(names.split(), anything)
