"""The attributes of values in simulated Python scripts: whitelists of the methods of built-in types, and those of classes."""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone
from typing import Any, Final

from . import costs
from .errors import ERRORS, PythonError, error
from .formatting import Formatting
from .values import (
    END,
    Builtin,
    BulkText,
    Code,
    DefaultDict,
    ErrorInstance,
    Function,
    GeneratorObject,
    Instance,
    Method,
    Module,
    NativeObject,
    NativeType,
    PyClass,
    Super,
    Value,
    Wrapper,
    type_name,
    with_type_names,
)

_MUTATING: Final = frozenset(
    [
        "append",
        "extend",
        "insert",
        "remove",
        "pop",
        "clear",
        "sort",
        "reverse",
        "update",
        "setdefault",
        "popitem",
        "add",
        "discard",
        "appendleft",
        "popleft",
        "extendleft",
        "rotate",
        "move_to_end",
        "subtract",
        "difference_update",
        "intersection_update",
    ]
)
_TEXT: Final = (
    "capitalize casefold center count encode endswith expandtabs find index isalnum isalpha isascii isdecimal isdigit "
    "isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip partition removeprefix "
    "removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith strip swapcase title "
    "translate upper zfill"
)
_BYTES: Final = (
    "center count decode endswith find hex index isalnum isalpha isdigit join ljust lower lstrip partition replace rfind "
    "rindex rjust rpartition rsplit rstrip split splitlines startswith strip title upper zfill"
)
_DICT: Final = "clear copy get items keys pop popitem setdefault update values"
_SET: Final = (
    "add clear copy difference difference_update discard intersection intersection_update isdisjoint issubset issuperset "
    "pop remove symmetric_difference union update"
)
_DATE: Final = "ctime isocalendar isoformat isoweekday replace strftime toordinal weekday"


def _methods(cls: type, names: str) -> dict[str, Callable[..., Any]]:
    return {name: getattr(cls, name) for name in names.split()}


METHODS: Final[Mapping[type, Mapping[str, Callable[..., Any]]]] = {
    str: _methods(str, _TEXT),
    bytes: _methods(bytes, _BYTES),
    bytearray: _methods(bytearray, f"{_BYTES} append extend clear pop"),
    int: _methods(int, "bit_length bit_count conjugate to_bytes"),
    float: _methods(float, "is_integer hex conjugate as_integer_ratio"),
    list: _methods(list, "append clear copy count extend index insert pop remove reverse"),
    tuple: _methods(tuple, "count index"),
    dict: _methods(dict, _DICT),
    set: _methods(set, _SET),
    frozenset: _methods(frozenset, "copy difference intersection isdisjoint issubset issuperset union"),
    Counter: _methods(Counter, f"{_DICT} most_common elements subtract total"),
    OrderedDict: _methods(OrderedDict, f"{_DICT} move_to_end"),
    DefaultDict: _methods(DefaultDict, _DICT),
    deque: _methods(
        deque,
        "append appendleft clear copy count extend extendleft index insert pop popleft remove reverse rotate",
    ),
    datetime: _methods(datetime, f"{_DATE} astimezone date time timetz timestamp timetuple utcoffset tzname"),
    date: _methods(date, _DATE),
    time: _methods(time, "isoformat replace strftime"),
    timedelta: _methods(timedelta, "total_seconds"),
    timezone: _methods(timezone, "tzname utcoffset"),
}
FIELDS: Final[Mapping[type, frozenset[str]]] = {
    datetime: frozenset(["year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo"]),
    date: frozenset(["year", "month", "day"]),
    time: frozenset(["hour", "minute", "second", "microsecond"]),
    timedelta: frozenset(["days", "seconds", "microseconds"]),
    int: frozenset(["real", "imag", "numerator", "denominator"]),
    float: frozenset(["real", "imag"]),
    range: frozenset(["start", "stop", "step"]),
    deque: frozenset(["maxlen"]),
}


SHARED: Final = frozenset(ERRORS.values())
"""The classes that all scripts have in common: none of them may change one."""


class Attributes(Formatting):
    plain_class: PyClass
    """The class of `object()`."""

    def find_method(self, value: Value, name: str) -> Method | None:
        if not isinstance(value, Instance):
            return None
        function = value.cls.find(name)
        return None if function is None else Method(function, value)

    def attribute(self, value: Value, name: str) -> Code:  # noqa: C901 - a case for each kind of value
        if isinstance(name, BulkText):
            name = self.text_of_bulk(name)
        if not isinstance(name, str):
            raise error("TypeError", f"attribute name must be string, not '{type_name(name)}'")
        if isinstance(value, Instance):
            return (yield self._instance_attribute(value, name))
        if isinstance(value, PyClass):
            return self._class_attribute(value, name)
        if isinstance(value, Module):
            if name in value.members:
                return value.members[name]
            self.refuse_member(value, name)
        if isinstance(value, Super):
            return self._super_attribute(value, name)
        if isinstance(value, (NativeObject, NativeType)) and name in value.members:
            return value.members[name]
        if isinstance(value, Wrapper) and value.kind == "property" and name in ("getter", "setter"):
            return Builtin(name, lambda _, arguments, __: _with_accessor(value, name, arguments[0]))
        result = self._native_attribute(value, name)
        if result is END:
            raise _no_attribute(f"'{type_name(value)}' object", name)
        return result

    def error_of(self, value: Value) -> Code:
        raise NotImplementedError

    def refuse_member(self, module: Module, name: str) -> None:
        raise NotImplementedError

    def _instance_attribute(self, value: Instance, name: str) -> Code:
        found = value.cls.find(name, END)
        if isinstance(found, Wrapper) and found.kind == "property":
            return (yield self.call(found.function, [value]))
        if name in value.fields:
            return value.fields[name]
        if found is not END:
            return bind(found, value, value.cls)
        if name == "__class__":
            return value.cls
        if name == "__dict__":
            return value.fields
        if isinstance(value, ErrorInstance) and name in (
            "__cause__",
            "__context__",
            "__traceback__",
            "with_traceback",
        ):
            if name == "with_traceback":
                return Builtin(name, lambda *_: value)
            return {"__cause__": value.cause, "__context__": value.context}.get(name)
        method = self.find_method(value, "__getattr__")
        if method is not None:
            return (yield self.call(method, [name]))
        raise _no_attribute(f"'{value.cls.name}' object", name)

    @staticmethod
    def _class_attribute(value: PyClass, name: str) -> Value:
        found = value.find(name, END)
        if found is not END:
            return (
                found.function
                if isinstance(found, Wrapper) and found.kind == "static"
                else bind(found, None, value)
            )
        special = {
            "__name__": value.name, "__qualname__": value.name, "__module__": value.module or "__main__",
            "__bases__": value.bases, "__mro__": tuple(value.order), "__doc__": None,
        }  # fmt: skip
        if name in special:
            return special[name]
        if name == "__init__":
            return Builtin("__init__", lambda _, arguments, __: initialize_error(arguments))
        raise _no_attribute(f"type object '{value.name}'", name)

    @staticmethod
    def _super_attribute(value: Super, name: str) -> Value:
        cls = value.receiver if isinstance(value.receiver, PyClass) else value.receiver.cls
        order = cls.order
        for base in order[order.index(value.cls) + 1 :]:
            if name in base.namespace:
                return bind(base.namespace[name], value.receiver, cls)
        if name in ("__init__", "__init_subclass__", "__setattr__"):
            return Builtin(name, lambda _, arguments, __: initialize_error([value.receiver, *arguments]))
        if name in ("__str__", "__repr__"):
            return Builtin(name, lambda machine, _, __: machine.default_text(value.receiver, name))
        raise _no_attribute("'super' object", name)

    def _native_attribute(self, value: Value, name: str) -> Value:  # noqa: C901, PLR0911, PLR0912 - a case for each kind of value
        for cls, fields in FIELDS.items():
            if isinstance(value, cls) and name in fields:
                return getattr(value, name)  # from the whitelist
        if isinstance(value, NativeType):
            return _unbound(value, name)
        if isinstance(value, (Function, Builtin)):
            return _function_attribute(value, name)
        if isinstance(value, BulkText):
            if isinstance(value.unit, (list, bytearray)) and (
                isinstance(value.unit, list) or name in _MUTATING
            ):
                self.refuse_feature(f"Python's {type_name(value)}.{name} of {value.length} elements")
            known = (
                name in ("format", "format_map", "__class__")
                or _method_of(type(value.unit), name) is not None
            )
            return _bulk_method(value, name) if known else END
        if isinstance(value, GeneratorObject) and name in ("send", "close", "throw"):
            return Builtin(name, lambda machine, arguments, _: _control(machine, value, name, arguments))
        if isinstance(value, str) and name == "format":
            return Builtin(
                "format", lambda machine, arguments, keywords: machine.format_text(value, arguments, keywords)
            )
        if isinstance(value, str) and name == "format_map":
            return Builtin(
                "format_map", lambda machine, arguments, _: machine.format_text(value, [], arguments[0])
            )
        if isinstance(value, list) and name == "sort":
            return Builtin("sort", lambda machine, _, keywords: _sort(machine, value, keywords))
        if name == "__class__":
            return self.class_of(value)
        if name == "__len__" and hasattr(value, "__len__"):
            return Builtin("__len__", lambda *_: len(value))
        function = _method_of(type(value), name)
        if function is None:
            return END
        return Builtin(
            name,
            lambda machine, arguments, keywords: call_native(
                machine, function, name, [value, *arguments], keywords
            ),
        )

    def class_of(self, value: Value) -> Value:
        raise NotImplementedError

    def set_attribute(self, value: Value, name: str, new: Value) -> Code:  # noqa: C901 - a case for each kind of value
        self.own_changes += 1
        if not isinstance(name, str):
            raise error("TypeError", f"attribute name must be string, not '{type_name(name)}'")
        if isinstance(value, Instance):
            found = value.cls.find(name)
            if isinstance(found, Wrapper) and found.kind == "property":
                if found.setter is None:
                    raise error(
                        "AttributeError", f"property '{name}' of '{value.cls.name}' object has no setter"
                    )
                yield self.call(found.setter, [value, new])
            elif (method := self.find_method(value, "__setattr__")) is not None:
                yield self.call(method, [name, new])
            else:
                value.fields[name] = new
        elif isinstance(value, PyClass) and value not in SHARED and value is not self.plain_class:
            value.namespace[name] = new
        elif isinstance(value, Function):
            value.fields[name] = new
        elif isinstance(value, (Module, NativeObject)):
            value.members[name] = new
        elif isinstance(value, (PyClass, NativeType)):
            raise error("TypeError", f"cannot set '{name}' attribute of immutable type '{value.name}'")
        elif self._native_attribute(value, name) is not END:
            raise error("AttributeError", f"'{type_name(value)}' object attribute '{name}' is read-only")
        else:
            raise _no_attribute(f"'{type_name(value)}' object", name)
        return None


def bind(found: Value, receiver: Value, cls: PyClass) -> Value:
    """Return what an attribute of a class is for an instance, or for the class itself without one."""
    if isinstance(found, Wrapper):
        if found.kind == "static":
            return found.function
        return Method(found.function, cls) if found.kind == "class" else found
    if receiver is not None and isinstance(found, (Function, Builtin)):
        if isinstance(found, Builtin) and not found.name.startswith("__"):
            return found
        return Method(found, receiver)
    return found


def _with_accessor(value: Wrapper, name: str, function: Value) -> Wrapper:
    """`@property.setter`: return a property with another function."""
    result = Wrapper("property", function if name == "getter" else value.function)
    result.setter = function if name == "setter" else value.setter
    return result


def initialize_error(arguments: list[Value]) -> Value:
    """`BaseException.__init__`, and that of objects, which does nothing."""
    if isinstance(arguments[0], ErrorInstance) and len(arguments) > 0:
        arguments[0].fields["args"] = tuple(arguments[1:])
    return None


def _no_attribute(owner: str, name: str) -> PythonError:
    return error("AttributeError", f"{owner} has no attribute '{name}'")


def _method_of(cls: type, name: str) -> Callable[..., Any] | None:
    for base in cls.__mro__:
        if base in METHODS and name in METHODS[base]:
            return METHODS[base][name]
    return None


def _unbound(value: NativeType, name: str) -> Value:
    if name in ("__name__", "__qualname__"):
        return value.name
    host = value.host if isinstance(value.host, type) else value.host[0]
    function = _method_of(host, name)
    if function is None:
        raise _no_attribute(f"type object '{value.name}'", name)

    def call(machine: Attributes, arguments: list[Value], keywords: dict[str, Value]) -> Any:
        if not arguments or not isinstance(arguments[0], host):
            raise error(
                "TypeError",
                f"descriptor '{name}' for '{value.name}' objects doesn't apply to a different object",
            )
        return call_native(machine, function, name, arguments, keywords)

    return Builtin(name, call)


def _function_attribute(value: Function | Builtin, name: str) -> Value:
    if isinstance(value, Function) and name in value.fields:
        return value.fields[name]
    if name in ("__name__", "__qualname__"):
        return value.qualified_name if isinstance(value, Function) and name == "__qualname__" else value.name
    return "__main__" if name == "__module__" else None if name == "__doc__" else END


def _bulk_method(value: BulkText, name: str) -> Builtin:
    def call(machine: Attributes, arguments: list[Value], keywords: dict[str, Value]) -> Code:
        method = yield machine.attribute(machine.text_of_bulk(value), name)
        return (yield machine.call(method, arguments, keywords))

    return Builtin(name, call)


def _control(machine: Attributes, generator: GeneratorObject, name: str, arguments: list[Value]) -> Code:
    if name == "close":
        generator.has_ended = True
        return None
    thrown = None
    if name == "throw":
        thrown = yield machine.error_of(arguments[0])
    result = yield machine.resume(generator, arguments[0] if name == "send" else None, thrown)
    if result is END:
        raise error("StopIteration", *(() if generator.result is None else (generator.result,)))
    return result


def _sort(machine: Attributes, value: list[Value], keywords: dict[str, Value]) -> Code:
    machine.own_changes += 1
    machine.charge(2 * costs.ELEMENT * len(value))
    value[:] = yield machine.order([*value], keywords.get("key"), is_reversed=bool(keywords.get("reverse")))


def call_native(  # noqa: C901, PLR0912 - the rules of one call
    machine: Attributes,
    function: Callable[..., Any],
    name: str,
    arguments: list[Value],
    keywords: dict[str, Value],
) -> Code:
    """Call a method of a number, a text or a container, with values of bounded size."""
    machine.own_changes += name in _MUTATING
    receiver = arguments[0]
    values: list[Value] = []
    for original in arguments[1:]:
        argument = original
        if isinstance(argument, BulkText) and name not in _STORING:
            argument = machine.text_of_bulk(argument)
        elif name in _ITERATING and not (isinstance(argument, dict) and isinstance(receiver, dict)):
            argument = yield machine.collect(argument)
        values.append(argument)
    if name == "join" and values and any(isinstance(item, BulkText) for item in values[0]):
        machine.check_length(sum(item.length for item in values[0] if isinstance(item, BulkText)))
        values[0] = [machine.text_of_bulk(item) if isinstance(item, BulkText) else item for item in values[0]]
    is_keyed = isinstance(receiver, (dict, set, frozenset))
    if is_keyed:
        for index, value in enumerate(values):
            values[index] = (
                _checked_keys(machine, name, receiver, value) if index == 0 or name in _ITERATING else value
            )
    if name in _SEARCHING and isinstance(receiver, (list, tuple, deque)):
        return (yield _search(machine, receiver, name, *values))
    if isinstance(receiver, costs.TEXTS):
        _check_text_method(machine, name, receiver, values, keywords)
    elif name in _STORING:
        yield machine.check_size(
            len(receiver) + (costs.size(values[0]) if name in _ITERATING and values else 1)
        )
    for value in (*values, *keywords.values()):
        if isinstance(value, int) and not -_MAX_NUMBER < value < _MAX_NUMBER and name not in _STORING:
            raise error("OverflowError", "Python int too large to convert to C ssize_t")
    if isinstance(receiver, Counter) and not all(
        isinstance(count, (int, float)) for count in receiver.values()
    ):
        machine.refuse_feature("a collections.Counter of Python with other values than numbers")
    if name == "to_bytes":
        machine.check_length(max(map(costs.size_of_number, (*values, *keywords.values())), default=0))
    machine.charge(costs.method(name, receiver, values))
    try:
        result = function(receiver, *values, **keywords)
    except TypeError as problem:
        items = values[0] if name == "join" and values else ()
        raise error(
            "TypeError", with_type_names(str(problem), [*values, *keywords.values(), *items])
        ) from None
    if isinstance(result, str):
        machine.charge(costs.CHARACTER * len(result))
    return result


def _checked_keys(machine: Attributes, name: str, receiver: Value, value: Value) -> Value:
    """Return an argument of a method of a dictionary or a set whose keys have been checked."""
    if name not in _ITERATING:
        return machine.key(value)
    if isinstance(value, list):
        is_pairs = isinstance(receiver, dict) and name == "update" and not isinstance(receiver, Counter)
        for item in value:
            machine.key(item[0] if is_pairs and isinstance(item, (list, tuple)) and item else item)
    return value


def _check_text_method(
    machine: Attributes, name: str, receiver: Value, values: list[Value], keywords: dict[str, Value]
) -> None:
    """Refuse what is too long, and encodings that take other than linear time."""
    if name in ("encode", "decode"):
        names = [*values, *keywords.values()]
        if any(not isinstance(text, str) or text.lower() not in _ENCODINGS for text in names):
            machine.refuse_feature("this encoding in Python")
    if (
        name == "translate"
        and isinstance(receiver, str)
        and not isinstance(values[0] if values else None, dict)
    ):
        raise error("TypeError", "str.translate() needs a dictionary here")
    machine.charge(costs.method(name, receiver, values))
    length = costs.result_length(name, receiver, values, keywords)
    machine.check_length(length)
    if length > len(receiver):
        machine.charge(costs.CHARACTER * length)


_MAX_NUMBER: Final = 1 << 63
_ITERATING: Final = frozenset(
    [
        "extend", "join", "update", "union", "intersection", "difference", "extendleft", "isdisjoint", "issubset", "issuperset",
        "symmetric_difference", "difference_update", "intersection_update", "subtract",
    ]
)  # fmt: skip
_STORING: Final = frozenset(
    ["append", "extend", "insert", "update", "setdefault", "add", "appendleft", "extendleft"]
)
_SEARCHING: Final = frozenset(["remove", "index", "count"])
_ENCODINGS: Final = frozenset(
    [
        "utf-8",
        "utf8",
        "utf_8",
        "u8",
        "utf-8-sig",
        "ascii",
        "us-ascii",
        "latin-1",
        "latin1",
        "latin_1",
        "iso-8859-1",
        "iso8859-1",
        "utf-16",
        "utf-16-le",
        "utf-16-be",
        "utf-32",
        "cp1252",
        "windows-1252",
        "strict",
        "ignore",
        "replace",
        "surrogateescape",
        "backslashreplace",
        "xmlcharrefreplace",
    ]
)
"""The encodings, and what is done with what they cannot encode."""


def _search(
    machine: Attributes, values: Value, name: str, item: Value, start: int = 0, stop: int | None = None
) -> Code:
    """`remove`, `index` or `count` with a value that a script may compare itself."""
    start = max(start if start >= 0 else start + len(values), 0)
    end = len(values) if stop is None else stop if stop >= 0 else stop + len(values)
    found = yield machine.position(values, item, start)
    if name == "count":
        count = 0
        while found is not None:
            count += 1
            found = yield machine.position(values, item, found + 1)
        return count
    if found is None or found >= end:
        kind = type_name(values)
        if name == "remove":
            raise error("ValueError", f"{kind}.remove(x): x not in {kind}")
        text = yield machine.representation(item)
        raise error(
            "ValueError", f"{text} is not in {kind}" if kind != "tuple" else "tuple.index(x): x not in tuple"
        )
    if name == "index":
        return found
    machine.charge(costs.ELEMENT * len(values))
    del values[found]
    return None
