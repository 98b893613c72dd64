"""The attributes of values in simulated Python scripts: whitelists of the methods of built-in types, and those of classes."""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone
from math import inf
from typing import Any, Final

from mockube.container_runtime.simulated.shell import limits

from .errors import PythonError, error
from .formatting import Formatting
from .operations import is_plain
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
    Iterator,
    Method,
    Module,
    NativeObject,
    NativeType,
    PyClass,
    Super,
    Value,
    Wrapper,
    type_name,
)

_SIZED: Final = frozenset({"center", "ljust", "rjust", "zfill", "expandtabs", "to_bytes"})
"""The methods that return as much as an argument says."""
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


class Attributes(Formatting):
    def key(self, value: Value) -> Value:
        """Return a key of a dictionary or a set; raise `TypeError` for one that cannot be hashed in bounded time."""
        if isinstance(value, (tuple, frozenset)) and not is_plain(value):
            remaining, count = [*value], 0
            while remaining:
                item = remaining.pop()
                count += 1
                if isinstance(item, (tuple, frozenset)):
                    remaining += item
                if count > limits.MAX_PYTHON_REPEATED:
                    raise error("MemoryError")
        return value

    def find_method(self, value: Value, name: str) -> Method | None:
        if not isinstance(value, Instance):
            return None
        function = value.cls.find(name)
        return None if function is None else Method(function, value)

    def attribute(self, value: Value, name: str) -> Code:
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

    def _native_attribute(self, value: Value, name: str) -> Value:  # noqa: C901, PLR0911 - a case for each kind of value
        for cls, fields in FIELDS.items():
            if isinstance(value, cls) and name in fields:
                return getattr(value, name)  # from the whitelist
        if isinstance(value, NativeType):
            return _unbound(value, name)
        if isinstance(value, (Function, Builtin)):
            return _function_attribute(value, name)
        if isinstance(value, BulkText):
            return (
                self._native_attribute(value.unit, name)
                if name not in METHODS[str]
                else _bulk_method(value, name)
            )
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

    def set_attribute(self, value: Value, name: str, new: Value) -> Code:
        self.own_changes += 1
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
        elif isinstance(value, PyClass) and value.module not in ("builtins", "json.decoder"):
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
    value[:] = yield machine.order([*value], keywords.get("key"), is_reversed=bool(keywords.get("reverse")))


def call_native(
    machine: Attributes,
    function: Callable[..., Any],
    name: str,
    arguments: list[Value],
    keywords: dict[str, Value],
) -> Code:
    """Call a method of a number, a text or a container, with values of bounded size."""
    machine.own_changes += name in _MUTATING
    values: list[Value] = [arguments[0]]
    for original in arguments[1:]:
        argument = original
        if isinstance(argument, (Iterator, GeneratorObject, Instance)) and name in _ITERATING:
            values.append((yield machine.collect(argument)))
            continue
        if isinstance(argument, BulkText) and name not in _STORING:
            argument = machine.text_of_bulk(argument)
        too_long = isinstance(argument, range) and len(argument) > limits.MAX_PYTHON_ELEMENTS
        if too_long or (name in _SIZED and isinstance(argument, int) and argument > limits.MAX_VALUE):
            yield machine.fill(inf if too_long else argument)
            raise error("MemoryError")
        values.append(argument)
    receiver = values[0]
    if name == "join":
        values[1] = yield machine.collect(values[1])
        _check_joined(receiver, values[1])
    if name == "replace" and isinstance(receiver, (str, bytes)) and len(values) > 2:
        count = receiver.count(values[1])
        if len(receiver) + count * len(values[2]) > limits.MAX_VALUE * 16:
            raise error("MemoryError")
    if (
        name in _COMPARING
        and isinstance(receiver, (list, tuple))
        and isinstance(values[1], (Instance, list, tuple))
    ):
        return (yield _search(machine, receiver, name, values[1]))
    result = function(*values, **keywords)
    if name in _STORING and hasattr(receiver, "__len__") and len(receiver) > limits.MAX_PYTHON_ELEMENTS:
        yield machine.fill(inf)
    return result


_ITERATING: Final = frozenset(
    ["extend", "join", "update", "union", "intersection", "difference", "extendleft"]
)
_STORING: Final = frozenset(
    ["append", "extend", "insert", "update", "setdefault", "add", "appendleft", "extendleft"]
)
_COMPARING: Final = frozenset(["remove", "index", "count"])


def _check_joined(separator: Value, parts: list[Value]) -> None:
    if (
        sum(len(part) + len(separator) for part in parts if isinstance(part, (str, bytes)))
        > limits.MAX_VALUE * 16
    ):
        raise error("MemoryError")


def _search(machine: Attributes, values: Value, name: str, item: Value) -> Code:
    """`remove`, `index` or `count` with a value that a script may compare itself."""
    found: list[int] = []
    for index, value in enumerate(values):
        if (yield machine.compare("==", value, item)):
            found.append(index)
            if name != "count":
                break
    if name == "count":
        return len(found)
    if not found:
        raise error(
            "ValueError", "list.remove(x): x not in list" if name == "remove" else "value is not in list"
        )
    if name == "index":
        return found[0]
    del values[found[0]]
    return None
