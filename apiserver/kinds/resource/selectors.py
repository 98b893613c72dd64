"""The expressions in CEL that select devices."""

from collections.abc import Iterable
from functools import cache
from typing import Final

from mockube.apimachinery import errors
from mockube.apimachinery.cel import types
from mockube.apimachinery.cel.cost.ranges import Range
from mockube.apimachinery.cel.environment import Environment
from mockube.apimachinery.cel.macros import BINDINGS
from mockube.apimachinery.cel.program import ProgramError
from mockube.apimachinery.cel.schema_types import DeclaredStructs, DeclaredType, sizes_of
from mockube.apimachinery.cel.source import Issues
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path

_MAX_LENGTH: Final = 10 * 1024
_MAX_COST: Final = 1_000_000
_MAX_ATTRIBUTES: Final = 32
_NAME: Final = "kubernetes.DRADevice"


def _entries(key: DeclaredType, value: DeclaredType) -> DeclaredType:
    type_ = types.map_of(types.STRING, value.type)
    return DeclaredType(type_, _MAX_ATTRIBUTES, key=key, element=value)


def _by_name(value: DeclaredType) -> DeclaredType:
    """Return the type of attributes or capacities: by their domains, then by their identifiers."""
    domain, identifier = DeclaredType(types.STRING, 63), DeclaredType(types.STRING, 32)
    return _entries(domain, _entries(identifier, value))


_ATTRIBUTE: Final = DeclaredType(types.ANY, 64)
_FIELDS: Final = {
    "driver": DeclaredType(types.STRING, 63),
    "attributes": _by_name(_ATTRIBUTE),
    "capacity": _by_name(DeclaredType(types.struct("kubernetes.Quantity"))),
    "allowMultipleAllocations": DeclaredType(types.BOOL, 1),
}
_DEVICE: Final = DeclaredType(types.struct(_NAME), fields=_FIELDS)


@cache
def _environment() -> Environment:
    structs = DeclaredStructs({_NAME: {name: declared.type for name, declared in _FIELDS.items()}})
    return Environment({"device": _DEVICE.type}, structs, macros=BINDINGS)


def _sizes(path: tuple[str, ...]) -> Range | None:
    """Return how large a part of a device may be: every attribute is as large, whatever its name."""
    if path[:1] == ("device",) and path[1:2] == ("attributes",) and len(path) == 4:
        path = (*path[:3], "@keys" if path[3] == "@keys" else "@values")
    return sizes_of(_DEVICE, path)


def check_expression(text: str, path: Path) -> Iterable[FieldError]:
    if len(text.encode()) > _MAX_LENGTH:
        return (errors.too_long(path, _MAX_LENGTH),)
    try:
        compiled = _environment().compile(text)
    except Issues as issues:
        return (errors.invalid(path, text, f"compilation failed: {issues}"),)
    except ProgramError as error:
        return (errors.internal(path, f"program instantiation failed: {error}"),)
    if compiled.type not in (types.BOOL, types.ANY):
        problem = f"must evaluate to bool or the unknown type, not {compiled.type}"
        return (errors.invalid(path, text, problem),)
    if compiled.cost(_sizes).high > _MAX_COST:
        return (errors.forbidden(path, "too complex, exceeds cost limit"),)
    return ()
