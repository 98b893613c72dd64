"""Pod templates: create a pod from one, compare two semantically, and compute upstream's hash.

The hash is that of go-spew's `%#v` text of the decoded template: empty fields are nil there, quantities canonical and times
zero. `data/pod_template.json` contains the Go types; its README states their source. Equality does not use the hash, because
hashes collide and change with the types of a newer Kubernetes. Endpoints' subsets are also ordered by hashes of such texts.
"""

import re
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from struct import iter_unpack
from typing import Any, Final

import orjson
from msgspec import Struct

from mockube.apimachinery import meta, quantity
from mockube.apimachinery.fnv import fnv1a
from mockube.apimachinery.quantity import Format, Quantity
from mockube.apimachinery.randomness import SUFFIX_ALPHABET
from mockube.apimachinery.schema import minors
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_POD_TEMPLATE_HASH
from mockube.client.kinds import PODS

_DATA: Final = Path(__file__).parent / "data"
_FILES: Final = ("pod_template.json", "endpoints.json")

POD_TEMPLATE: Final = "v1.PodTemplateSpec"

_COUNT_BYTES: Final = 8

_NIL: Final = "<nil>"
_ZERO_TIME: Final = "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}"
_EMPTY_RAW: Final = "{Raw:([]uint8)<nil>}"

_QUANTITY = re.compile(r"([-+]?)([0-9]++)\.?+(.*)")
_DECIMAL_EXPONENTS: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_BINARY_EXPONENTS: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_INT64_DIGITS: Final = 18
_BINARY_DIGITS: Final = 14
_NO_DECIMAL: Final = f"(*inf.Dec){_NIL}"
_WORD_BITS: Final = 64
_MAX_DIGITS: Final = 10_000
"""The maximum number of digits of a number that is written in machine words; larger numbers could fill the memory."""
_NANO_DIGITS: Final = 9


# --- the Go types of templates


class GoKind(Enum):
    """The shape of a value of a Go type, in Go and in JSON."""

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
    """JSON that is copied unchanged; stored templates do not contain any."""


class GoField(Struct, frozen=True, kw_only=True):
    name: str
    """The name in Go."""
    json: str
    """The name in JSON; empty for an embedded struct."""
    type: str


class GoType(Struct, frozen=True, kw_only=True):
    name: str
    shape: GoKind
    fields: tuple[GoField, ...] = ()
    element: str = ""
    """The element type of a list, map or pointer."""
    minor: str
    """The minor release of Kubernetes whose type it is."""

    def type_of(self, name: str) -> "GoType":
        """Return a type that a field or element of this one has."""
        return go_type(name, self.minor)


_SPECIAL_SHAPES: Final = {
    "v1.Time": GoKind.TIME,
    "resource.Quantity": GoKind.QUANTITY,
    "intstr.IntOrString": GoKind.INT_OR_STRING,
    "v1.FieldsV1": GoKind.RAW,
}
_SCALAR_SHAPES: Final = {
    "string": GoKind.TEXT,
    "bool": GoKind.BOOLEAN,
    "int32": GoKind.NUMBER,
    "int64": GoKind.NUMBER,
}


@cache
def _load_types(minor: str) -> Mapping[str, Any]:
    types: dict[str, Any] = {}
    for name in _FILES:
        types |= orjson.loads((_DATA / name).read_bytes())
    for name, changed in minors.changes(minor, "podTemplate").items():
        if changed is not None:
            types[name] = orjson.loads(bytes(changed))
    return types


@cache
def go_type(name: str, minor: str = minors.NEWEST) -> GoType:
    """Return the Go type of a name, such as `*int64`, `[]v1.Container`, `v1.PodSpec`."""
    if name in _SPECIAL_SHAPES:
        return GoType(name=name, minor=minor, shape=_SPECIAL_SHAPES[name])
    if name in _SCALAR_SHAPES:
        return GoType(name=name, minor=minor, shape=_SCALAR_SHAPES[name])
    if name.startswith("*"):
        return GoType(name=name, minor=minor, shape=GoKind.POINTER, element=name[1:])
    if name.startswith("[]"):
        return GoType(name=name, minor=minor, shape=GoKind.LIST, element=name[2:])
    if name.startswith("map["):
        return GoType(name=name, minor=minor, shape=GoKind.MAP, element=name.partition("]")[2])
    declared = _load_types(minor)[name]
    if isinstance(declared, str):
        underlying = go_type(declared, minor)
        return GoType(name=name, minor=minor, shape=underlying.shape, element=underlying.element)
    fields = tuple(GoField(name=go, json=json, type=type_name) for go, json, type_name in declared)
    return GoType(name=name, minor=minor, shape=GoKind.STRUCT, fields=fields)


# --- pods of a template, and equality


def pod_of(template: ReadOnlyTree, owner: ReadOnlyTree) -> ReadOnlyTree:
    """Return the pod that the owner's controller creates from the template; the server generates its name."""
    template_metadata = meta.metadata(template)
    metadata = {
        "generateName": f"{meta.name(owner)}-",
        "namespace": meta.namespace(owner),
        "labels": template_metadata.get("labels"),
        "annotations": template_metadata.get("annotations"),
        "ownerReferences": [meta.controller_reference(owner)],
        "finalizers": template_metadata.get("finalizers"),
    }
    return {
        "kind": PODS.kind,
        "apiVersion": PODS.api_version,
        "metadata": {field: value for field, value in metadata.items() if value},
        "spec": template.get("spec") or {},
    }


def without_hash(template: ReadOnlyTree) -> ReadOnlyTree:
    """Return the template without the hash label, as a Deployment has it."""
    if LABEL_POD_TEMPLATE_HASH not in meta.labels(template):
        return template
    return meta.with_labels(template, {LABEL_POD_TEMPLATE_HASH: None})


def equal_ignoring_hash(template: ReadOnlyTree, other: ReadOnlyTree) -> bool:
    """Return whether templates are semantically equal: empty fields count as absent, and quantities as numbers."""
    template, other = without_hash(template), without_hash(other)
    return template == other or canonical_template(template) == canonical_template(other)


def canonical_template(template: ReadOnlyTree) -> Any:
    """Return a value that is equal for templates that are semantically equal, and for no others."""
    return _canonical(template, go_type(POD_TEMPLATE))


def _canonical(value: Any, kind: GoType) -> Any:
    return _CANONICAL_VALUES[kind.shape](value, kind)


def _canonical_struct(value: Any, kind: GoType) -> Any:
    tree = value or {}
    fields = {
        field.name: _canonical(tree[field.json] if field.json else tree, kind.type_of(field.type))
        for field in kind.fields
        if field.json in tree or not field.json
    }
    return {name: field_value for name, field_value in fields.items() if field_value} or None


def _canonical_pointer(value: Any, kind: GoType) -> Any:
    # A nil pointer is not a pointer to a zero value: `emptyDir: {}` is a volume.
    return None if value is None else (_canonical(value, kind.type_of(kind.element)),)


def _canonical_list(value: Any, kind: GoType) -> Any:
    return [_canonical(item, kind.type_of(kind.element)) for item in value or ()]


def _canonical_map(value: Any, kind: GoType) -> Any:
    return {key: _canonical(item, kind.type_of(kind.element)) for key, item in (value or {}).items()}


def _unchanged_value(value: Any, _: GoType) -> Any:
    return value


_CANONICAL_VALUES: Final[Mapping[GoKind, Callable[[Any, GoType], Any]]] = {
    GoKind.STRUCT: _canonical_struct,
    GoKind.POINTER: _canonical_pointer,
    GoKind.LIST: _canonical_list,
    GoKind.MAP: _canonical_map,
    GoKind.QUANTITY: lambda value, _: quantity.from_json(value),
    GoKind.BOOLEAN: _unchanged_value,
    GoKind.NUMBER: _unchanged_value,
    GoKind.TEXT: _unchanged_value,
    GoKind.TIME: _unchanged_value,
    GoKind.INT_OR_STRING: _unchanged_value,
    GoKind.RAW: _unchanged_value,
}


# --- the hash


def template_hash(template: ReadOnlyTree, collision_count: int | None, minor: str = minors.NEWEST) -> str:
    """Return the value of `pod-template-hash` in a minor. A collision count of 0 is not the same as none."""
    text = spew(template, POD_TEMPLATE, minor).encode()
    if collision_count is not None:
        text += collision_count.to_bytes(_COUNT_BYTES, "little")
    return safe_encode(str(fnv1a(text, 32)))


def safe_encode(text: str) -> str:
    """Encode a text in an alphabet without vowels, so that names contain no words; upstream's SafeEncodeString."""
    return "".join(SUFFIX_ALPHABET[ord(character) % len(SUFFIX_ALPHABET)] for character in text)


def spew(value: Any, type_name: str, minor: str = minors.NEWEST) -> str:
    """Return go-spew's text of a value, with its type as prefix."""
    kind = go_type(type_name, minor)
    if kind.shape is GoKind.POINTER:
        return f"({type_name}){_NIL if value is None else _spew_value(value, kind.type_of(kind.element))}"
    return f"({type_name}){_spew_value(value, kind)}"


def _spew_value(value: Any, kind: GoType) -> str:
    return _WRITERS[kind.shape](value, kind)


def _spew_struct(value: Any, kind: GoType) -> str:
    tree = value or {}
    return (
        "{"
        + " ".join(
            f"{field.name}:{spew(_field_value(tree, field), field.type, kind.minor)}" for field in kind.fields
        )
        + "}"
    )


def _field_value(tree: Mapping[str, Any], field: GoField) -> Any:
    # The fields of an embedded struct are inlined.
    return tree.get(field.json) if field.json else tree


def _spew_list(value: Any, kind: GoType) -> str:
    element = kind.type_of(kind.element)
    return f"[{' '.join(_spew_value(item, element) for item in value)}]" if value else _NIL


def _spew_map(value: Any, kind: GoType) -> str:
    if not value:
        return _NIL
    element = kind.type_of(kind.element)
    return f"map[{' '.join(f'{key}:{_spew_value(value[key], element)}' for key in sorted(value))}]"


def _spew_int_or_string(value: Any, _: GoType) -> str:
    is_text = isinstance(value, str)
    number, text = (0, value) if is_text else (value or 0, "")
    return f"{{Type:(intstr.Type){int(is_text)} IntVal:(int32){number} StrVal:(string){text}}}"


_WRITERS: Final[Mapping[GoKind, Callable[[Any, GoType], str]]] = {
    GoKind.BOOLEAN: lambda value, _: "true" if value else "false",
    GoKind.NUMBER: lambda value, _: str(value or 0),
    GoKind.TEXT: lambda value, _: value or "",
    GoKind.STRUCT: _spew_struct,
    GoKind.LIST: _spew_list,
    GoKind.MAP: _spew_map,
    GoKind.TIME: lambda _, __: _ZERO_TIME,
    GoKind.QUANTITY: lambda value, _: _spew_quantity(quantity.from_json(value)),
    GoKind.INT_OR_STRING: _spew_int_or_string,
    GoKind.RAW: lambda _, __: _EMPTY_RAW,
}


def _spew_quantity(value: Quantity) -> str:
    """Return the text of a quantity's fields in Go: an int64 and a scale, or a large decimal if that is too small."""
    canonical = str(value)
    form = quantity.parse(canonical).format
    if canonical == "0":
        return _amount(0, 0, canonical, form)
    match = _QUANTITY.fullmatch(canonical)
    assert match is not None, canonical
    sign, digits, suffix = match.groups()
    if form is Format.BINARY_SI:
        exponent, scale = _BINARY_EXPONENTS[suffix], 0
        is_small = len(digits) + exponent * 3 // 10 <= _BINARY_DIGITS
        has_cached_text = int(digits) % 8 != 0
    else:
        scale = _DECIMAL_EXPONENTS[suffix] if suffix in _DECIMAL_EXPONENTS else int(suffix[1:])
        exponent = 0
        is_small = len(digits) <= _INT64_DIGITS
        has_cached_text = not digits.endswith("000")
    if not is_small:
        return _amount(0, 0, "", form, decimal=_decimal(value, sign))
    return _amount(int(sign + digits) << exponent, scale, canonical if has_cached_text else "", form)


def _amount(value: int, scale: int, text: str, form: Format, *, decimal: str = _NO_DECIMAL) -> str:
    return (
        f"{{i:(resource.int64Amount){{value:(int64){value} scale:(resource.Scale){scale}}} "
        f"d:(resource.infDecAmount){{Dec:{decimal}}} s:(string){text} Format:(resource.Format){form.value}}}"
    )


def _decimal(value: Quantity, sign: str) -> str:
    """Return the text of a large decimal: its billionths in machine words, the lowest first."""
    number = value.number.copy_abs()
    if number.adjusted() > _MAX_DIGITS:
        words = [str(value)]
    else:
        integer = int(number.scaleb(_NANO_DIGITS))
        packed = integer.to_bytes(-(-integer.bit_length() // _WORD_BITS) * _WORD_BITS // 8, "little")
        words = [str(word) for (word,) in iter_unpack("<Q", packed)]
    negative = "true" if sign == "-" else "false"
    return (
        f"(*inf.Dec){{unscaled:(big.Int){{neg:(bool){negative} abs:(big.nat)[{' '.join(words)}]}} "
        f"scale:(inf.Scale){_NANO_DIGITS}}}"
    )
