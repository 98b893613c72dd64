"""What `str`, `repr` and `format` return in simulated Python scripts."""

import re
from collections import Counter, deque
from collections.abc import Mapping
from string import Formatter
from typing import Any, Final

from . import costs
from .errors import error
from .operations import Operations, is_native
from .values import (
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
    Value,
    type_name,
)

_PERCENT: Final = re.compile(
    r"%(?:\((?P<key>[^)]{0,500})\))?(?P<flags>[-+ #0]*)(?P<width>\*|\d*)(?:\.(?P<precision>\*|\d*))?[hlL]?(?P<type>.?)"
)
_NUMBER: Final = re.compile(r"\d+")
_BRACKETS: Final[Mapping[type, tuple[str, str]]] = {
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    deque: ("deque([", "])"),
}


class Formatting(Operations):
    def text(self, value: Value) -> Code:
        if isinstance(value, str):
            return value
        if isinstance(value, Instance):
            for name in ("__str__", "__repr__"):
                method = self.find_method(value, name)
                if method is not None:
                    return (yield self._call_for_text(method, name))
            return (yield self.default_text(value, "__str__"))
        if isinstance(value, BulkText) and isinstance(value.unit, str):
            return self.text_of_bulk(value)
        if isinstance(value, NativeObject) and "__str__" in value.members:
            return (yield self.call(value.members["__str__"], []))
        if is_native(value) and not hasattr(value, "__len__"):
            self.charge(costs.CONVERTED * costs.size(value))
            return str(value)
        return (yield self.representation(value))

    def _call_for_text(self, method: Method, name: str) -> Code:
        result = yield self.call(method, [])
        if isinstance(result, BulkText):
            result = self.text_of_bulk(result)
        if not isinstance(result, str):
            raise error("TypeError", f"{name} returned non-string (type {type_name(result)})")
        return result

    def default_text(self, value: Value, name: str) -> Code:
        """Return the text of an error or an object without a method of its own."""
        if not isinstance(value, ErrorInstance):
            return f"<{_full_name(value.cls)} object at {_address(value)}>"
        arguments = value.arguments
        if name == "__repr__":
            inner = yield self.representation(arguments)
            return f"{value.cls.name}{inner[:-2] + ')' if len(arguments) == 1 else inner}"
        if value.fields.get("strerror") is not None and "errno" in value.fields:
            name_text = value.fields.get("filename")
            place = "" if name_text is None else f": {name_text!r}"
            return f"[Errno {value.fields['errno']}] {value.fields['strerror']}{place}"
        if not arguments:
            return ""
        if len(arguments) == 1:
            is_key = any(cls.name == "KeyError" for cls in value.cls.order)
            return (yield (self.representation(arguments[0]) if is_key else self.text(arguments[0])))
        if any(cls.name == "OSError" for cls in value.cls.order) and len(arguments) == 2:
            return f"[Errno {arguments[0]}] {arguments[1]}"
        return (yield self.representation(arguments))

    def representation(self, value: Value) -> Code:
        if isinstance(value, (list, tuple, set, dict, frozenset, deque)) and not self.is_plain(value):
            with self.nest():
                return (yield self._container_text(value))
        if isinstance(value, Instance):
            method = self.find_method(value, "__repr__")
            if method is not None:
                return (yield self._call_for_text(method, "__repr__"))
            return (yield self.default_text(value, "__repr__"))
        if isinstance(value, BulkText):
            return repr(self.text_of_bulk(value))
        if isinstance(value, NativeObject) and "__repr__" in value.members:
            return (yield self.call(value.members["__repr__"], []))
        if not is_native(value):
            return _own_text(value)
        self.charge(costs.CONVERTED * costs.size(value))
        return repr(value)

    def _container_text(self, value: Any) -> Code:
        parts: list[str] = []
        size = 0
        for item in value.items() if isinstance(value, dict) else value:
            if isinstance(value, dict):
                key = yield self.representation(item[0])
                content = "{...}" if item[1] is value else (yield self.representation(item[1]))
                parts.append(f"{key}: {content}")
            else:
                parts.append("[...]" if item is value else (yield self.representation(item)))
            size += len(parts[-1])
            self.check_length(size)
        self.charge(costs.CHARACTER * size)
        text = ", ".join(parts)
        if isinstance(value, DefaultDict):
            factory = yield self.representation(value.factory)
            return f"defaultdict({factory}, {{{text}}})"
        if isinstance(value, Counter):
            return f"Counter({{{text}}})"
        if isinstance(value, dict):
            return f"{{{text}}}"
        if isinstance(value, set) and not value:
            return "set()"
        opening, closing = _BRACKETS.get(type(value), ("[", "]"))
        return f"{opening}{text}{',' if isinstance(value, tuple) and len(value) == 1 else ''}{closing}"

    def formatted(self, value: Value, specification: str) -> Code:
        if isinstance(value, Instance):
            method = self.find_method(value, "__format__")
            if method is not None:
                return (yield self.call(method, [specification]))
        if not specification:
            return (yield self.text(value))
        self._check_widths(specification)
        if not is_native(value) and not isinstance(value, BulkText):
            raise error("TypeError", f"unsupported format string passed to {type_name(value)}.__format__")
        value = self.text_of_bulk(value) if isinstance(value, BulkText) else value
        self.charge(costs.CONVERTED * costs.size(value))
        return format(value, specification)

    def _check_widths(self, specification: str) -> None:
        """Charge the padding of a format, and refuse what is too long."""
        self.charge(costs.CALLED * len(specification))
        for number in _NUMBER.findall(specification):
            self.check_length(int(number) if len(number) < 12 else 10**12)
            self.charge(costs.CHARACTER * int(number))

    # --- the operator for formats

    def format_percent(self, text: str, values: Value) -> Code:
        arguments = deque(values if isinstance(values, tuple) else [values])
        self.charge(costs.ELEMENT * len(arguments))
        uses_keys = False
        parts: list[str] = []
        position = size = 0
        self.charge(costs.CHARACTER * len(text))
        for match in _PERCENT.finditer(text):
            parts.append(text[position : match.start()])
            size += len(parts[-1]) + (len(parts[-2]) if len(parts) > 1 else 0)
            self.check_length(size)
            self.charge(costs.NODE)
            yield self.pause()
            position = match.end()
            if match["type"] == "%":
                parts.append("%")
                continue
            width = _width(match["width"], arguments)
            precision = "" if match["precision"] is None else f".{_width(match['precision'], arguments)}"
            if match["key"] is not None:
                uses_keys = True
                if not isinstance(values, dict):
                    raise error("TypeError", "format requires a mapping")
                value = yield self.item(values, match["key"])
            elif not arguments:
                raise error("TypeError", "not enough arguments for format string")
            else:
                value = arguments.popleft()
            parts.append((yield self._format_one(match, value, f"{match['flags']}{width}{precision}")))
        if arguments and not uses_keys and not isinstance(values, dict):
            raise error("TypeError", "not all arguments converted during string formatting")
        return "".join([*parts, text[position:]])

    def _format_one(self, match: re.Match[str], value: Value, options: str) -> Code:
        letter = match["type"]
        self._check_widths(options)
        if letter in ("s", "r", "a"):
            text_of_value = yield (self.text(value) if letter == "s" else self.representation(value))
            return f"%{options}s" % text_of_value
        if letter not in "diouxXeEfFgGc" or not letter:
            if not letter:
                raise error("ValueError", "incomplete format")
            place = match.end() - 1
            text_of_value = f"'{letter}' (0x{ord(letter):x}) at index {place}"
            raise error("ValueError", f"unsupported format character {text_of_value}")
        if not is_native(value):
            raise error("TypeError", f"%{letter} format: a real number is required, not {type_name(value)}")
        self.charge(costs.CONVERTED * costs.size(value))
        return f"%{options}{letter}" % (value,)

    # --- the method for formats

    def format_text(self, text: str, arguments: list[Value], keywords: dict[str, Value]) -> Code:
        parts: list[str] = []
        count = size = 0
        self.charge(costs.CHARACTER * len(text))
        for literal, name, specification, conversion in Formatter().parse(text):
            parts.append(literal)
            size += len(literal) + (len(parts[-2]) if len(parts) > 1 else 0)
            self.check_length(size)
            self.charge(costs.NODE)
            yield self.pause()
            if name is None:
                continue
            field = name
            if not field or field[0] in ".[":
                field, count = f"{count}{field}", count + 1
            value = yield self._field(field, arguments, keywords)
            inner = specification or ""
            if "{" in inner:
                if inner.startswith("{}"):
                    inner, count = f"{{{count}}}{inner[2:]}", count + 1
                with self.nest():
                    inner = yield self.format_text(inner, arguments, keywords)
            if conversion:
                value = yield (self.text(value) if conversion == "s" else self.representation(value))
            parts.append((yield self.formatted(value, inner)))
        return "".join(parts)

    def _field(self, field: str, arguments: list[Value], keywords: dict[str, Value]) -> Code:
        self.charge(costs.CALLED * len(field))
        name, *rest = re.split(r"(?=[.\[])", field)
        if name.isdecimal():
            if int(name[:6]) >= len(arguments):
                raise error(
                    "IndexError", f"Replacement index {int(name)} out of range for positional args tuple"
                )
            value = arguments[int(name)]
        else:
            value = yield self.item(keywords, name)
        for part in rest:
            if part.startswith("."):
                value = yield self.attribute(value, part[1:])
            else:
                index = part[1:].rstrip("]")
                value = yield self.item(value, int(index) if index.isdecimal() else index)
        return value

    def item(self, value: Value, index: Value) -> Code:
        raise NotImplementedError


def _width(text: str, arguments: deque[Value]) -> Any:
    if text != "*":
        return text
    if not arguments:
        raise error("TypeError", "not enough arguments for format string")
    width = arguments.popleft()
    if not isinstance(width, int):
        raise error("TypeError", "* wants int")
    return int(width)


def _full_name(cls: PyClass) -> str:
    return f"{cls.module or '__main__'}.{cls.name}"


def _address(value: Value) -> str:
    """Return an address that a run of the simulation repeats."""
    return f"0x7f3c{hash(type_name(value)) & 0 | 0x5A2B4D50:08x}"


def _own_text(value: Value) -> str:  # noqa: PLR0911 - a row for each kind of value
    match value:
        case PyClass():
            return f"<class '{value.full_name if value.module == 'builtins' else _full_name(value)}'>"
        case NativeType():
            return f"<class '{value.name}'>"
        case Function():
            return f"<function {value.qualified_name} at {_address(value)}>"
        case Method():
            name = getattr(value.function, "qualified_name", "")
            return f"<bound method {name} of {type_name(value.receiver)} object>"
        case Builtin():
            return f"<built-in function {value.name}>"
        case Module():
            return f"<module '{value.name}'>"
        case GeneratorObject():
            return f"<generator object {value.name} at {_address(value)}>"
        case Iterator():
            return f"<{value.type_name} object at {_address(value)}>"
        case _:
            return (
                f"<{type_name(value)} object at {_address(value)}>" if not is_native(value) else repr(value)
            )
