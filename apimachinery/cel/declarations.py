"""Declarations of functions: their overloads and types, which are parsed from tables of text."""

import re
from collections.abc import Mapping

from msgspec import Struct

from . import types
from .types import Type


class Overload(Struct, frozen=True):
    id: str
    member: bool
    """Whether the function is called on its first argument."""
    args: tuple[Type, ...]
    result: Type
    parameters: tuple[str, ...]
    """The type parameters of the arguments and the result."""


Functions = Mapping[str, tuple[Overload, ...]]

_NAMES = dict(
    {
        "any": types.ANY,
        "bool": types.BOOL,
        "bytes": types.BYTES,
        "double": types.DOUBLE,
        "duration": types.DURATION,
        "dyn": types.DYN,
        "int": types.INT,
        "null": types.NULL,
        "string": types.STRING,
        "timestamp": types.TIMESTAMP,
        "uint": types.UINT,
        "google.protobuf.Timestamp": types.TIMESTAMP,
        "google.protobuf.Duration": types.DURATION,
        "net.IP": types.opaque("net.IP"),
        "net.CIDR": types.opaque("net.CIDR"),
    }.items()
)
_WORD = re.compile(r"[\w.]+|[(),]")


def parse_type(text: str) -> Type:
    """Parse a type such as `map(string, list(A))`; a single letter is a type parameter."""
    words = _WORD.findall(text)
    type_, end = _parse(words, 0)
    assert end == len(words), text
    return type_


def _parse(words: list[str], index: int) -> tuple[Type, int]:
    name = words[index]
    index += 1
    parameters: list[Type] = []
    if index < len(words) and words[index] == "(":
        while words[index] != ")":
            part, index = _parse(words, index + 1)
            parameters.append(part)
        index += 1
    if name in ("list", "map", "type"):
        return Type(name, name, tuple(parameters)), index
    if parameters:
        return types.opaque(name, *parameters), index
    if len(name) == 1:
        return types.type_parameter(name), index
    return _NAMES.get(name) or types.struct(name), index


def declare(table: str) -> Functions:
    """Parse lines of `function overload (types) -> type`, or `function overload type.(types) -> type` for a method."""
    functions: dict[str, tuple[Overload, ...]] = {}
    for line in filter(None, map(str.strip, table.splitlines())):
        function, id_, signature = line.split(maxsplit=2)
        functions[function] = (*functions.get(function, ()), _overload(id_, signature))
    return functions


def _overload(id_: str, signature: str) -> Overload:
    before, _, result = signature.rpartition(" -> ")
    member = not before.startswith("(")
    target, _, rest = before.partition(".(") if member else ("", "", before.removeprefix("("))
    texts = [target] if member else []
    texts += [part for part in _split_at_commas(rest.removesuffix(")")) if part]
    args = tuple(map(parse_type, texts))
    result_type = parse_type(result)
    names = sorted({name for type_ in (*args, result_type) for name in _parameters(type_)})
    return Overload(id_, member, args, result_type, tuple(names))


def _split_at_commas(text: str) -> list[str]:
    parts, depth = [""], 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def _parameters(type_: Type) -> set[str]:
    names = {type_.name} if type_.kind == "param" else set()
    return names.union(*map(_parameters, type_.parameters)) if type_.parameters else names


def merge(*libraries: Functions) -> dict[str, tuple[Overload, ...]]:
    """Return the functions of all libraries, with the overloads of each function in the libraries' order."""
    functions: dict[str, tuple[Overload, ...]] = {}
    for library in libraries:
        for name, overloads in library.items():
            functions[name] = functions.get(name, ()) + overloads
    return functions
