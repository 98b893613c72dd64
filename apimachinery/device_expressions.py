"""CEL expressions that select devices: their variable `device`, and their evaluation for a device."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from .cel import types
from .cel.cost.ranges import EstimateRange
from .cel.environment import CompiledExpression, Environment
from .cel.libraries import semver
from .cel.libraries.quantities import QuantityValue, quantity_value
from .cel.macros import MACROS_WITH_BIND
from .cel.program import ProgramError
from .cel.schema_types import DeclaredStructs, DeclaredType, sizes_of
from .cel.source import Issues
from .cel.values import CelError, CostExceeded
from .memoize import memoize
from .quantity import from_json
from .tree import ReadOnlyTree

MAX_COST: Final = 1_000_000
_MAX_ATTRIBUTES: Final = 32
"""The limits of k8s.io/api/resource/v1/types.go: the cost of an expression, and the attributes of a device."""
_NAME: Final = "kubernetes.DRADevice"


class DeviceSelectorError(ValueError):
    """An expression cannot be compiled or evaluated for a device."""


def _entries(key: DeclaredType, value: DeclaredType) -> DeclaredType:
    type_ = types.map_of(types.STRING, value.type)
    return DeclaredType(type_, _MAX_ATTRIBUTES, key=key, element=value)


def _by_name(value: DeclaredType) -> DeclaredType:
    """Return the type of a map of attributes or capacities by domain, then by identifier."""
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
def environment() -> Environment:
    structs = DeclaredStructs({_NAME: {name: declared.type for name, declared in _FIELDS.items()}})
    return Environment({"device": _DEVICE.type}, structs, macros=MACROS_WITH_BIND)


def sizes(path: tuple[str, ...]) -> EstimateRange | None:
    """Return the possible sizes of a part of a device; all attributes have the same, whatever their names."""
    if path[:1] == ("device",) and path[1:2] == ("attributes",) and len(path) == 4:
        path = (*path[:3], "@keys" if path[3] == "@keys" else "@values")
    return sizes_of(_DEVICE, path)


def selects(expression: str, driver: str, device: ReadOnlyTree) -> bool:
    """Return whether an expression selects a device; raise `DeviceSelectorError` if it cannot be evaluated."""
    try:
        value, _ = _compiled(expression).program.evaluate({"device": _value(driver, device)}, MAX_COST)
    except (Issues, ProgramError) as error:
        raise DeviceSelectorError(f"CEL compile error: {error}") from error
    except CostExceeded as error:
        raise DeviceSelectorError(
            "CEL runtime error: operation cancelled: actual cost limit exceeded"
        ) from error
    except CelError as error:
        raise DeviceSelectorError(f"CEL runtime error: {error}") from error
    if not isinstance(value, bool):
        raise DeviceSelectorError("CEL runtime error: the result is no bool")
    return value


def _compile(expression: str) -> CompiledExpression:
    return environment().compile(expression)


_compiled = memoize(256, max_length=10 * 1024)(_compile)


class _Domains(dict[str, Any]):
    """Attributes or capacities by domain; every other domain reads as empty."""

    def __missing__(self, key: str) -> Mapping[str, Any]:
        return {}

    def __contains__(self, key: object) -> bool:
        return True

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ARG002 - it is never missing
        return self[key]


def _value(driver: str, device: ReadOnlyTree) -> Mapping[str, Any]:
    return {
        "driver": driver,
        "allowMultipleAllocations": bool(device.get("allowMultipleAllocations")),
        "attributes": _by_domain(driver, device.get("attributes") or {}, attribute_value),
        "capacity": _by_domain(driver, device.get("capacity") or {}, _capacity),
    }


def _by_domain(driver: str, named: Mapping[str, ReadOnlyTree], read: Any) -> _Domains:
    domains = _Domains()
    for name, attribute in named.items():
        domain, _, identifier = name.rpartition("/")
        domains.setdefault(domain or driver, {})[identifier] = read(attribute)
    return domains


def attribute_value(attribute: ReadOnlyTree) -> Any:
    for field in ("int", "bool", "string"):
        if field in attribute:
            return attribute[field]
    if "version" in attribute:
        return semver.parse(attribute["version"])
    raise DeviceSelectorError("unsupported attribute value")


def _capacity(capacity: ReadOnlyTree) -> QuantityValue:
    return quantity_value(from_json(capacity["value"]))
