"""The built-in functions of simulated Python scripts."""

import itertools
from collections.abc import Callable
from typing import Any, Final

from mockube.container_runtime.simulated.shell import limits as shell_limits
from mockube.container_runtime.simulated.shell.process import read_input

from . import costs, limits
from .calls import Calls
from .errors import ERRORS, PythonError, error
from .operations import is_native
from .values import (
    END,
    Builtin,
    BulkText,
    Code,
    ErrorInstance,
    Function,
    GeneratorObject,
    Instance,
    Iterator,
    Method,
    Module,
    NativeObject,
    NativeType,
    PyClass,
    Super,
    Value,
    Wrapper,
    flatten,
    is_subclass,
    type_name,
)

Keywords = dict[str, Value]
_SUMMED_AT_ONCE: Final = 20_000
_KEYS_AT_ONCE: Final = 5_000
_BITS_PER_CHARACTER: Final = 5
_REFUSED: Final = ("exec", "eval", "compile", "memoryview", "__import__", "breakpoint", "locals", "help")


# --- output and input


def _print(machine: Calls, arguments: list[Value], keywords: Keywords) -> Code:
    texts: list[str] = []
    length = 0
    for argument in arguments:
        texts.append((yield machine.text(argument)))
        length += len(texts[-1]) + 1
        machine.check_length(length)
    machine.charge(costs.CHARACTER * length)
    separator, end = keywords.get("sep"), keywords.get("end")
    for name, value in (("sep", separator), ("end", end)):
        if value is not None and not isinstance(value, str):
            raise error("TypeError", f"{name} must be None or a string, not {type_name(value)}")
    machine.check_length(length + len(texts) * len(separator or ""))
    text = (" " if separator is None else separator).join(texts) + ("\n" if end is None else end)
    target = keywords.get("file")
    if target is None:
        yield machine.write(1, text, flushes=bool(keywords.get("flush")))
        return None
    write = yield machine.attribute(target, "write")
    yield machine.call(write, [text])
    if keywords.get("flush"):
        yield machine.call((yield machine.attribute(target, "flush")), [])
    return None


def _input(machine: Calls, arguments: list[Value], _: Keywords) -> Code:
    prompt = (yield machine.text(arguments[0])) if arguments else ""
    yield machine.write(1, prompt, flushes=True)
    line = yield read_line()
    if not line:
        raise error("EOFError", "EOF when reading a line")
    return line.removesuffix("\n")


def read_line() -> Code:
    """Return a line of the standard input, with its end."""
    line = bytearray()
    while not line.endswith(b"\n") and len(line) < shell_limits.MAX_VALUE:
        data = yield from read_input(1)
        if not data:
            break
        line += data
    return line.decode("utf-8", "replace")


# --- numbers and sequences


def _len(machine: Calls, arguments: list[Value], __: Keywords) -> Any:
    (value,) = arguments
    if isinstance(value, BulkText):
        return value.length
    if is_native(value) and hasattr(value, "__len__"):
        return len(value)
    if isinstance(value, NativeObject) and "__len__" in value.members:
        return _call_method(machine, value, "__len__")
    if isinstance(value, Instance) and value.cls.find("__len__") is not None:
        return _call_method(machine, value, "__len__")
    raise error("TypeError", f"object of type '{type_name(value)}' has no len()")


def _call_method(machine: Calls, value: Value, name: str) -> Code:
    return (yield machine.call((yield machine.attribute(value, name)), []))


def _with_method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of a number for which an instance has a method."""

    def call(machine: Calls, arguments: list[Value], _: Keywords) -> Any:
        if arguments and isinstance(arguments[0], Instance) and arguments[0].cls.find(name) is not None:
            return machine.call(Method(arguments[0].cls.find(name), arguments[0]), arguments[1:])
        for argument in arguments:
            if not is_native(argument):
                raise error("TypeError", f"bad operand type for {name.strip('_')}(): '{type_name(argument)}'")
            machine.charge(costs.CHARACTER * costs.size(argument))
        return function(*arguments)

    return call


def _pow(machine: Calls, arguments: list[Value], _: Keywords) -> Code:
    if len(arguments) == 3 and all(isinstance(argument, int) for argument in arguments):
        machine.charge(
            costs.modular_power(arguments[1], arguments[2]) + costs.division(arguments[0], arguments[2])
        )
        return pow(*arguments)
    return (yield machine.operate("**", *arguments))


def _round(value: Any, digits: int | None = None) -> Any:
    if isinstance(value, int) and isinstance(digits, int) and -digits > value.bit_length() + 1:
        return 0  # Python computes the power of ten
    return round(value, digits)


def _divmod(machine: Calls, arguments: list[Value], _: Keywords) -> Code:
    quotient = yield machine.operate("//", *arguments)
    return quotient, (yield machine.operate("%", *arguments))


def _sum(machine: Calls, arguments: list[Value], keywords: Keywords) -> Code:
    total = arguments[1] if len(arguments) > 1 else keywords.get("start", 0)
    if isinstance(total, str):
        raise error("TypeError", "sum() can't sum strings [use ''.join(seq) instead]")
    if (
        isinstance(arguments[0], (list, tuple))
        and len(arguments[0]) <= _SUMMED_AT_ONCE
        and all(costs.is_small(value) and isinstance(value, (int, float)) for value in arguments[0])
    ):
        machine.charge(costs.NODE * len(arguments[0]))
        return sum(arguments[0], total)
    iterator = yield machine.iterate(arguments[0])
    while (item := (yield machine.advance(iterator))) is not END:
        total = yield machine.operate("+", total, item)
    return total


def _extreme(operator: str, name: str) -> Callable[..., Any]:
    def call(machine: Calls, arguments: list[Value], keywords: Keywords) -> Code:
        iterator = yield machine.iterate(arguments[0] if len(arguments) == 1 else arguments)
        key = keywords.get("key")
        best, best_key = END, None
        while (item := (yield machine.advance(iterator))) is not END:
            item_key = item if key is None else (yield machine.call(key, [item]))
            if best is END or (yield machine.truth((yield machine.compare(operator, item_key, best_key)))):
                best, best_key = item, item_key
        if best is END:
            if "default" in keywords:
                return keywords["default"]
            empty = "iterable argument is empty" if machine.version >= (3, 12) else "arg is an empty sequence"
            raise error("ValueError", f"{name}() {empty}")
        return best

    return call


def _sorted(machine: Calls, arguments: list[Value], keywords: Keywords) -> Code:
    values = yield machine.collect(arguments[0])
    return (yield machine.order(values, keywords.get("key"), is_reversed=bool(keywords.get("reverse"))))


def _reversed(machine: Calls, arguments: list[Value], _: Keywords) -> Code:
    if isinstance(arguments[0], range):
        return reversed(arguments[0])
    return reversed((yield machine.collect(arguments[0])))


def _enumerate(machine: Calls, arguments: list[Value], keywords: Keywords) -> Code:
    iterator = yield machine.iterate(arguments[0])
    numbers = itertools.count(arguments[1] if len(arguments) > 1 else keywords.get("start", 0))

    def step() -> Code:
        item = yield machine.advance(iterator)
        return END if item is END else (next(numbers), item)

    return Iterator("enumerate", step)


def _zip(machine: Calls, arguments: list[Value], _: Keywords) -> Code:
    iterators: list[Value] = []
    for argument in arguments:
        iterators.append((yield machine.iterate(argument)))

    def step() -> Code:
        values: list[Value] = []
        for iterator in iterators:
            values.append((yield machine.advance(iterator)))
            if values[-1] is END:
                return END
        return tuple(values) if values else END

    return Iterator("zip", step)


def _map(machine: Calls, arguments: list[Value], _: Keywords) -> Code:
    tuples = yield _zip(machine, arguments[1:], {})

    def step() -> Code:
        values = yield tuples.step()
        return END if values is END else (yield machine.call(arguments[0], list(values)))

    return Iterator("map", step)


def _filter(machine: Calls, arguments: list[Value], _: Keywords) -> Code:
    function = arguments[0]
    iterator = yield machine.iterate(arguments[1])

    def step() -> Code:
        while (item := (yield machine.advance(iterator))) is not END:
            result = item if function is None else (yield machine.call(function, [item]))
            if (yield machine.truth(result)):
                return item
        return END

    return Iterator("filter", step)


def _any(machine: Calls, arguments: list[Value], _: Keywords) -> Code:
    iterator = yield machine.iterate(arguments[0])
    while (item := (yield machine.advance(iterator))) is not END:
        if (yield machine.truth(item)):
            return True
    return False


def _all(machine: Calls, arguments: list[Value], _: Keywords) -> Code:
    iterator = yield machine.iterate(arguments[0])
    while (item := (yield machine.advance(iterator))) is not END:
        if not (yield machine.truth(item)):
            return False
    return True


def _iter(machine: Calls, arguments: list[Value], _: Keywords) -> Any:
    return machine.iterate(arguments[0])


def _next(machine: Calls, arguments: list[Value], _: Keywords) -> Code:
    item = yield machine.advance(arguments[0])
    machine.own_changes += 1
    if item is not END:
        return item
    if len(arguments) > 1:
        return arguments[1]
    result = getattr(arguments[0], "result", None) if isinstance(arguments[0], GeneratorObject) else None
    raise error("StopIteration", *(() if result is None else (result,)))


# --- objects


def _isinstance(machine: Calls, arguments: list[Value], _: Keywords) -> bool:
    value, types = arguments
    classes = flatten(types)
    machine.charge(costs.CALLED * len(classes))
    return any(_is_of(machine, value, cls) for cls in classes)


def _is_of(machine: Calls, value: Value, cls: Value) -> bool:
    if cls is machine.builtins["object"]:
        return True
    if isinstance(cls, PyClass):
        return isinstance(value, Instance) and cls in value.cls.order
    if isinstance(cls, NativeType):
        return isinstance(value.unit if isinstance(value, BulkText) else value, cls.host)
    raise error("TypeError", "isinstance() arg 2 must be a type, a tuple of types, or a union")


def _issubclass(machine: Calls, arguments: list[Value], _: Keywords) -> bool:
    cls, bases = arguments
    others = flatten(bases)
    machine.charge(costs.CALLED * len(others))
    return any(is_subclass(cls, base) or cls is base or base is machine.builtins["object"] for base in others)


def _getattr(machine: Calls, arguments: list[Value], _: Keywords) -> Code:
    try:
        return (yield machine.attribute(arguments[0], arguments[1]))
    except PythonError as problem:
        if len(arguments) > 2 and problem.value.cls is ERRORS["AttributeError"]:
            return arguments[2]
        raise


def _hasattr(machine: Calls, arguments: list[Value], _: Keywords) -> Code:
    missing = object()
    return (yield _getattr(machine, [*arguments, missing], {})) is not missing


def _setattr(machine: Calls, arguments: list[Value], _: Keywords) -> Code:
    yield machine.set_attribute(*arguments)
    return None


def _delattr(_: Calls, arguments: list[Value], __: Keywords) -> None:
    if (
        not isinstance(arguments[0], Instance)
        or not isinstance(arguments[1], str)
        or arguments[1] not in arguments[0].fields
    ):
        raise error("AttributeError", arguments[1])
    del arguments[0].fields[arguments[1]]


def _callable(_: Calls, arguments: list[Value], __: Keywords) -> bool:
    value = arguments[0]
    if isinstance(value, Instance):
        return value.cls.find("__call__") is not None
    return isinstance(value, (Function, Builtin, Method, PyClass, NativeType))


def _vars(_: Calls, arguments: list[Value], __: Keywords) -> Value:
    if arguments and isinstance(arguments[0], Instance):
        return arguments[0].fields
    raise error("TypeError", "vars() argument must have __dict__ attribute")


def _dir(machine: Calls, arguments: list[Value], _: Keywords) -> Value:
    if not arguments:
        machine.refuse_feature("Python's dir() without an argument")
    value = arguments[0]
    names: set[str] = set()
    if isinstance(value, (Module, NativeObject)):
        names |= value.members.keys()
    if isinstance(value, Instance):
        names |= value.fields.keys()
        for cls in value.cls.order:
            names |= cls.namespace.keys()
    machine.charge(5 * costs.NODE * len(names))
    return sorted(name for name in names if costs.is_atom(name))


def _super(machine: Calls, arguments: list[Value], _: Keywords) -> Super:
    if len(arguments) == 2:
        return Super(arguments[0], arguments[1])
    frame = machine.frame
    if frame.function is None or frame.function.owner is None or not frame.arguments:
        raise error("RuntimeError", "super(): no arguments")
    return Super(frame.function.owner, frame.arguments[0])


def _wrapper(kind: str) -> Callable[..., Any]:
    def call(_: Calls, arguments: list[Value], __: Keywords) -> Wrapper:
        return Wrapper(kind, arguments[0])

    return call


def _globals(machine: Calls, _: list[Value], __: Keywords) -> Value:
    return machine.frame.module


def _exit(_: Calls, arguments: list[Value], __: Keywords) -> None:
    raise exit_error(arguments[0] if arguments else None)


def exit_error(code: Value) -> PythonError:
    problem = PythonError(ErrorInstance(ERRORS["SystemExit"], () if code is None else (code,)))
    problem.value.fields["code"] = code
    return problem


def _id(_: Calls, arguments: list[Value], __: Keywords) -> int:
    return 140_000_000_000_000 + id(arguments[0]) % 1_000_000_000


def _hash(machine: Calls, arguments: list[Value], _: Keywords) -> Any:
    (value,) = arguments
    if isinstance(value, Instance) and value.cls.find("__hash__") is not None:
        return machine.call(Method(value.cls.find("__hash__"), value), [])
    return hash(machine.key(value)) if is_native(value) else _id(machine, arguments, {})


def _repr(machine: Calls, arguments: list[Value], _: Keywords) -> Code:
    return (yield machine.representation(arguments[0]))


def _format(machine: Calls, arguments: list[Value], _: Keywords) -> Code:
    return (yield machine.formatted(arguments[0], arguments[1] if len(arguments) > 1 else ""))


def _format_method(machine: Calls, arguments: list[Value], keywords: Keywords) -> Code:
    if not arguments or not isinstance(arguments[0], str):
        raise error("TypeError", "unbound method str.format() needs an argument")
    return (yield machine.format_text(arguments[0], arguments[1:], keywords))


def _refuse(name: str) -> Callable[..., Any]:
    def call(machine: Calls, *_: Any) -> None:
        machine.refuse_feature(f"Python's {name}()")

    return call


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of numbers and texts."""

    def call(machine: Calls, arguments: list[Value], keywords: Keywords) -> Any:
        arguments = [
            machine.text_of_bulk(value) if isinstance(value, BulkText) else value for value in arguments
        ]
        for argument in (*arguments, *keywords.values()):
            if not is_native(argument):
                raise error(
                    "TypeError", f"'{type_name(argument)}' object cannot be interpreted as an integer"
                )
            machine.charge(costs.ENTRY * costs.size(argument))
        return function(*arguments, **keywords)

    return call


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "print": _print, "input": _input, "len": _len, "abs": _with_method("__abs__", abs),
    "round": _with_method("__round__", _round), "divmod": _divmod, "pow": _pow, "sum": _sum,
    "min": _extreme("<", "min"), "max": _extreme(">", "max"), "sorted": _sorted, "reversed": _reversed,
    "any": _any, "all": _all, "iter": _iter, "next": _next, "isinstance": _isinstance, "issubclass": _issubclass,
    "getattr": _getattr, "hasattr": _hasattr, "setattr": _setattr, "delattr": _delattr, "callable": _callable,
    "vars": _vars, "dir": _dir, "globals": _globals, "exit": _exit, "quit": _exit, "id": _id, "hash": _hash,
    "repr": _repr, "ascii": _repr, "format": _format, "chr": _plain(chr), "ord": _plain(ord), "hex": _plain(hex),
    "oct": _plain(oct), "bin": _plain(bin),
    **{name: _refuse(name) for name in _REFUSED},
}  # fmt: skip


# --- types


def _str(machine: Calls, arguments: list[Value], _: Keywords) -> Code:
    if not arguments:
        return ""
    if isinstance(arguments[0], (bytes, bytearray)) and len(arguments) > 1:
        return arguments[0].decode(*arguments[1:])
    return (yield machine.text(arguments[0]))


def _number(host: type, name: str) -> Callable[..., Any]:
    def call(machine: Calls, arguments: list[Value], keywords: Keywords) -> Any:
        if not arguments:
            return host()
        value = arguments[0]
        if isinstance(value, BulkText):
            arguments = [value := machine.text_of_bulk(value), *arguments[1:]]
        if isinstance(value, Instance) and value.cls.find(f"__{name}__") is not None:
            return _call_method(machine, value, f"__{name}__")
        if not isinstance(value, (int, float, str, bytes, bytearray)):
            description = (
                "a string, a bytes-like object or a real number"
                if name == "int"
                else "a string or a real number"
            )
            raise error("TypeError", f"{name}() argument must be {description}, not '{type_name(value)}'")
        if name == "int" and not isinstance(value, (int, float)):
            machine.check_length(len(value))
            if len(value) * _BITS_PER_CHARACTER > limits.MAX_BITS and len(arguments) > 1:
                machine.refuse_feature("a number with so many digits in Python")
        machine.charge(costs.CHARACTER * costs.size(value))
        return host(*arguments, **keywords)

    return call


def _bool(machine: Calls, arguments: list[Value], _: Keywords) -> Any:
    return machine.truth(arguments[0]) if arguments else False


def _container(host: Callable[..., Any]) -> Callable[..., Any]:
    def call(machine: Calls, arguments: list[Value], _: Keywords) -> Code:
        if not arguments:
            return host()
        values = yield machine.collect(arguments[0])
        if host in (list, tuple):
            machine.charge(costs.ELEMENT * len(values))
            return values if host is list else tuple(values)
        keys = yield keys_of(machine, values)
        return keys if host is set else frozenset(keys)

    return call


def keys_of(machine: Calls, values: list[Value]) -> Code:
    """Return the values as a set, after a check of each as a key."""
    keys: set[Value] = set()
    for start in range(0, len(values), _KEYS_AT_ONCE):
        part = values[start : start + _KEYS_AT_ONCE]
        machine.charge(costs.ENTRY * len(part))
        keys.update(map(machine.key, part))
        yield machine.pause()
    machine.charge(costs.ELEMENT * len(keys))
    return keys


def _dict(machine: Calls, arguments: list[Value], keywords: Keywords) -> Code:
    result: dict[Value, Value] = {}
    if arguments and isinstance(arguments[0], dict):
        machine.charge(costs.ENTRY * len(arguments[0]))
        result |= arguments[0]
    elif arguments:
        for pair in (yield machine.collect(arguments[0])):
            key, value = yield machine.collect(pair)
            result[machine.key(key)] = value
    return result | keywords


def _data(host: type) -> Callable[..., Any]:
    def call(machine: Calls, arguments: list[Value], keywords: Keywords) -> Code:
        if not arguments:
            return host()
        value = arguments[0]
        if isinstance(value, BulkText):
            return (
                yield machine.bulk(
                    host(value.unit.encode() if isinstance(value.unit, str) else value.unit),
                    value.length,
                    is_exact=value.is_exact,
                )
            )
        if isinstance(value, int) and value > limits.MAX_TEXT:
            return (yield machine.bulk(host(limits.MAX_TEXT), value))
        if isinstance(value, str):
            if len(arguments) == 1 and "encoding" not in keywords:
                raise error("TypeError", "string argument without an encoding")
            encode = yield machine.attribute(value, "encode")
            return host((yield machine.call(encode, arguments[1:], keywords)))
        if isinstance(value, (bytes, bytearray, int)):
            machine.charge(costs.CHARACTER * costs.size(value))
            return host(*arguments, **keywords)
        return host((yield machine.collect(value)))

    return call


def _range(_: Calls, arguments: list[Value], __: Keywords) -> range:
    for argument in arguments:
        if not isinstance(argument, int):
            raise error("TypeError", f"'{type_name(argument)}' object cannot be interpreted as an integer")
    return range(*arguments)


def _type(machine: Calls, arguments: list[Value], _: Keywords) -> Value:
    if len(arguments) != 1:
        machine.refuse_feature("Python's type() with three arguments")
    return machine.class_of(arguments[0])


def _object(machine: Calls, _: list[Value], __: Keywords) -> Instance:
    return Instance(machine.plain_class)


def _from_keys(machine: Calls, arguments: list[Value], _: Keywords) -> Code:
    result: dict[Value, Value] = {}
    for value in (yield machine.collect(arguments[0])):
        machine.charge(costs.ENTRY)
        result[machine.key(value)] = arguments[1] if len(arguments) > 1 else None
        yield machine.pause()
    return result


def _from_bytes(machine: Calls, arguments: list[Value], keywords: Keywords) -> Any:
    arguments = [machine.text_of_bulk(value) if isinstance(value, BulkText) else value for value in arguments]
    if arguments and costs.size(arguments[0]) * 8 > limits.MAX_BITS:
        machine.refuse_feature("a number of this size in Python")
    return _plain(int.from_bytes)(machine, arguments, keywords)


def types() -> dict[str, NativeType]:
    """Return the built-in types; a script may not change them."""
    rows: list[tuple[str, Any, Any]] = [
        ("str", str, _str), ("int", int, _number(int, "int")), ("float", float, _number(float, "float")),
        ("bool", bool, _bool), ("list", list, _container(list)), ("tuple", tuple, _container(tuple)),
        ("set", set, _container(set)), ("frozenset", frozenset, _container(frozenset)), ("dict", dict, _dict),
        ("bytes", bytes, _data(bytes)), ("bytearray", bytearray, _data(bytearray)), ("range", range, _range),
        ("type", (PyClass, NativeType), _type), ("object", object, _object), ("slice", slice, _plain(slice)),
        ("NoneType", type(None), _refuse("NoneType")), ("enumerate", Iterator, _enumerate), ("zip", Iterator, _zip),
        ("map", Iterator, _map), ("filter", Iterator, _filter), ("super", Super, _super),
        ("property", Wrapper, _wrapper("property")), ("staticmethod", Wrapper, _wrapper("static")),
        ("classmethod", Wrapper, _wrapper("class")), ("function", Function, _refuse("function")),
        ("module", Module, _refuse("module")), ("generator", GeneratorObject, _refuse("generator")),
    ]  # fmt: skip
    result = {name: NativeType(name, host, call) for name, host, call in rows}
    result["str"].members["format"] = Builtin("format", _format_method)
    result["dict"].members["fromkeys"] = Builtin("fromkeys", _from_keys)
    result["bytes"].members["fromhex"] = Builtin("fromhex", _plain(bytes.fromhex))
    result["int"].members["from_bytes"] = Builtin("from_bytes", _from_bytes)
    result["str"].members["maketrans"] = Builtin("maketrans", _plain(str.maketrans))
    return result


HIDDEN_TYPES: Final = ("NoneType", "function", "module", "generator")
