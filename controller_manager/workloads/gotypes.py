"""The Go types of a pod template: what its hash and its equality are defined by.

Data and their reading alone. `data/pod_template.json` holds them, and its README says how they were got.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

_DATA: Final = Path(__file__).parent / "data" / "pod_template.json"

POD_TEMPLATE: Final = "v1.PodTemplateSpec"


class Shape(Enum):
    """What a value of the type is, in Go and so in JSON."""

    BOOLEAN = "bool"
    NUMBER = "number"
    TEXT = "string"
    STRUCT = "struct"
    LIST = "slice"
    MAP = "map"
    POINTER = "pointer"
    TIME = "time"
    QUANTITY = "quantity"
    INT_OR_STRING = "int or string"
    RAW = "raw"
    """JSON kept as it came, which no template that is stored has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    name: str
    """In Go."""
    json: str
    """Empty for a struct whose fields stand among its owner's."""
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GoType:
    name: str
    shape: Shape
    fields: tuple[Field, ...] = ()
    element: str = ""
    """What a list, map or pointer holds."""


_SPECIAL: Final = {
    "v1.Time": Shape.TIME,
    "resource.Quantity": Shape.QUANTITY,
    "intstr.IntOrString": Shape.INT_OR_STRING,
    "v1.FieldsV1": Shape.RAW,
}
_SCALARS: Final = {
    "string": Shape.TEXT,
    "bool": Shape.BOOLEAN,
    "int32": Shape.NUMBER,
    "int64": Shape.NUMBER,
}


@cache
def _declared() -> Mapping[str, Any]:
    declared: dict[str, Any] = orjson.loads(_DATA.read_bytes())
    return declared


@cache
def go_type(name: str) -> GoType:
    """The type that Go writes like this: `*int64`, `[]v1.Container`, `v1.PodSpec`."""
    if name in _SPECIAL:
        return GoType(name=name, shape=_SPECIAL[name])
    if name in _SCALARS:
        return GoType(name=name, shape=_SCALARS[name])
    if name.startswith("*"):
        return GoType(name=name, shape=Shape.POINTER, element=name[1:])
    if name.startswith("[]"):
        return GoType(name=name, shape=Shape.LIST, element=name[2:])
    if name.startswith("map["):
        return GoType(name=name, shape=Shape.MAP, element=name.partition("]")[2])
    declared = _declared()[name]
    if isinstance(declared, str):
        underlying = go_type(declared)
        return GoType(name=name, shape=underlying.shape, element=underlying.element)
    fields = tuple(Field(name=go, json=json, type=of) for go, json, of in declared)
    return GoType(name=name, shape=Shape.STRUCT, fields=fields)
