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
    Instance,
    Iterator,
    NativeObject,
    NativeType,
    Value,
    type_name,
)

_MAX_FACTORIAL: Final = 20_000
_MATH: Final = (
    "acos asin atan atan2 ceil copysign cos cosh degrees exp fabs floor fmod fsum gcd hypot isclose isfinite isinf isnan "
    "isqrt ldexp log log10 log1p log2 modf radians sin sinh sqrt tan tanh trunc"
)


# --- json


def json_module(machine: PythonInterpreter) -> dict[str, Value]:
    def loads(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Value:
        text = arguments[0]
        if not isinstance(text, (str, bytes, bytearray)):
            raise error(
                "TypeError", f"the JSON object must be str, bytes or bytearray, not {type_name(text)}"
            )
        return json.loads(text)

    def dump(_: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Code:
        text = yield dump_text(machine, arguments[:1], keywords)
        yield machine.call((yield machine.attribute(arguments[1], "write")), [text])
        return None

    def load(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Code:
        return json.loads((yield machine.call((yield machine.attribute(arguments[0], "read")), [])))

    return {
        "dumps": Builtin("dumps", lambda _, arguments, keywords: dump_text(machine, arguments, keywords)),
        "loads": Builtin("loads", loads), "dump": Builtin("dump", dump), "load": Builtin("load", load),
        "JSONDecodeError": ERRORS["JSONDecodeError"],
    }  # fmt: skip


def dump_text(machine: PythonInterpreter, arguments: list[Value], keywords: Keywords) -> Code:
    options = {
        name: keywords[name]
        for name in ("indent", "sort_keys", "ensure_ascii", "separators")
        if name in keywords
    }
    if isinstance(options.get("indent"), int) and options["indent"] > 64:
        raise error("MemoryError")
    value = yield _to_json(machine, arguments[0], keywords.get("default"), 0)
    return json.dumps(value, **options)


def _to_json(machine: PythonInterpreter, value: Value, default: Value, depth: int) -> Code:
    if depth > 200:
        raise error("ValueError", "Circular reference detected")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, BulkText):
        return machine.text_of_bulk(value)
    if isinstance(value, dict):
        result: dict[Value, Value] = {}
        for key, item in value.items():
            if not isinstance(key, (str, int, float, bool, type(None))):
                raise error("TypeError", f"keys must be str, int, float, bool or None, not {type_name(key)}")
            result[key] = yield _to_json(machine, item, default, depth + 1)
        return result
    if isinstance(value, (list, tuple)):
        items: list[Value] = []
        for item in value:
            items.append((yield _to_json(machine, item, default, depth + 1)))
        return items
    if default is None:
        raise error(
            "TypeError", f"Object of type {type_name(value).rpartition('.')[2]} is not JSON serializable"
        )
    return (yield _to_json(machine, (yield machine.call(default, [value])), default, depth + 1))


# --- numbers


def math_module(_: PythonInterpreter) -> dict[str, Value]:
    def factorial(number: int) -> int:
        if number > _MAX_FACTORIAL:
            raise error("MemoryError")
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
        def call(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> NativeObject:
            digest = hashlib.new(name, usedforsecurity=False)

            def update(_: PythonInterpreter, data: list[Value], __: Keywords) -> None:
                value = machine.text_of_bulk(data[0]) if isinstance(data[0], BulkText) else data[0]
                if isinstance(value, str):
                    raise error("TypeError", "Strings must be encoded before hashing")
                digest.update(value)

            if arguments:
                update(machine, arguments, {})
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
            return Counter((yield machine.collect(arguments[0])))
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
        return itertools.product(*lists, **keywords)

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
        return Builtin(
            "partial",
            lambda machine, others, more: machine.call(function, [*first, *others], keywords | more),
        )

    def wraps(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Builtin:
        def decorate(_: PythonInterpreter, inner: list[Value], __: Keywords) -> Value:
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
        if not arguments or not hasattr(arguments[0], "name"):
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
        return _copy_of(arguments[0])

    def deep(_: PythonInterpreter, arguments: list[Value], __: Keywords) -> Code:
        return (yield _deep_copy(machine, arguments[0], 0))

    return {"copy": Builtin("copy", shallow), "deepcopy": Builtin("deepcopy", deep)}


def _copy_of(value: Value) -> Value:
    if isinstance(value, Instance):
        copied = Instance(value.cls)
        copied.fields = dict(value.fields)
        return copied
    return value.copy() if isinstance(value, (list, dict, set, deque)) else value


def _deep_copy(machine: PythonInterpreter, value: Value, depth: int) -> Code:
    if depth > 200:
        raise error("RecursionError", "maximum recursion depth exceeded")
    copied = _copy_of(value)
    if isinstance(value, list):
        for index, item in enumerate(value):
            copied[index] = yield _deep_copy(machine, item, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            copied[key] = yield _deep_copy(machine, item, depth + 1)
    elif isinstance(value, Instance):
        for key, item in value.fields.items():
            copied.fields[key] = yield _deep_copy(machine, item, depth + 1)
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
