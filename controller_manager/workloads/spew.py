"""A pod template as go-spew writes it under `%#v`: the text that upstream hashes.

Written for a template as a controller decodes it from protobuf: what is empty is nil there, quantities are canonical,
and times, which no stored template has, are zero.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from apimachinery import quantity
from apimachinery.quantity import Format, Quantity
from controller_manager.workloads.gotypes import Field, GoType, Shape, go_type

_NIL: Final = "<nil>"
_ZERO_TIME: Final = "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}"
_EMPTY_RAW: Final = "{Raw:([]uint8)<nil>}"


def spew(value: Any, type_name: str) -> str:
    """The value with its type before it."""
    kind = go_type(type_name)
    if kind.shape is Shape.POINTER:
        return f"({type_name}){_NIL if value is None else _bare(value, go_type(kind.element))}"
    return f"({type_name}){_bare(value, kind)}"


def _bare(value: Any, kind: GoType) -> str:
    return _WRITERS[kind.shape](value, kind)


def _struct(value: Any, kind: GoType) -> str:
    tree = value or {}
    return "{" + " ".join(f"{field.name}:{spew(_of(tree, field), field.type)}" for field in kind.fields) + "}"


def _of(tree: Mapping[str, Any], field: Field) -> Any:
    # The fields of an embedded struct stand among its owner's.
    return tree.get(field.json) if field.json else tree


def _list(value: Any, kind: GoType) -> str:
    element = go_type(kind.element)
    return f"[{' '.join(_bare(item, element) for item in value)}]" if value else _NIL


def _map(value: Any, kind: GoType) -> str:
    if not value:
        return _NIL
    element = go_type(kind.element)
    return f"map[{' '.join(f'{key}:{_bare(value[key], element)}' for key in sorted(value))}]"


def _int_or_string(value: Any, _: GoType) -> str:
    is_text = isinstance(value, str)
    number, text = (0, value) if is_text else (value or 0, "")
    return f"{{Type:(intstr.Type){int(is_text)} IntVal:(int32){number} StrVal:(string){text}}}"


_WRITERS: Final[Mapping[Shape, Callable[[Any, GoType], str]]] = {
    Shape.BOOLEAN: lambda value, _: "true" if value else "false",
    Shape.NUMBER: lambda value, _: str(value or 0),
    Shape.TEXT: lambda value, _: value or "",
    Shape.STRUCT: _struct,
    Shape.LIST: _list,
    Shape.MAP: _map,
    Shape.TIME: lambda _, __: _ZERO_TIME,
    Shape.QUANTITY: lambda value, _: _quantity(quantity.from_json(value)),
    Shape.INT_OR_STRING: _int_or_string,
    Shape.RAW: lambda _, __: _EMPTY_RAW,
}

_CANONICAL = re.compile(r"(-?)([0-9]+)(.*)")
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
_WORD: Final = 2**64
_NANO_DIGITS: Final = 9


def _quantity(given: Quantity) -> str:
    """How Go keeps the canonical text: a whole number and a scale, or where that is not enough a large decimal."""
    canonical = str(given)
    form = quantity.parse(canonical).format
    if canonical == "0":
        return _amount(0, 0, canonical, form)
    found = _CANONICAL.fullmatch(canonical)
    assert found is not None, canonical
    sign, digits, suffix = found.groups()
    if form is Format.BINARY_SI:
        exponent, scale = _BINARY_EXPONENTS[suffix], 0
        is_small = len(digits) + exponent * 3 // 10 <= _BINARY_DIGITS
        is_kept = int(digits) % 8 != 0
    else:
        scale = _DECIMAL_EXPONENTS[suffix] if suffix in _DECIMAL_EXPONENTS else int(suffix[1:])
        exponent = 0
        is_small = len(digits) <= _INT64_DIGITS
        is_kept = not digits.endswith("000")
    if not is_small:
        return _amount(0, 0, "", form, decimal=_decimal(given, sign))
    return _amount(int(sign + digits) << exponent, scale, canonical if is_kept else "", form)


def _amount(value: int, scale: int, text: str, form: Format, *, decimal: str = _NO_DECIMAL) -> str:
    return (
        f"{{i:(resource.int64Amount){{value:(int64){value} scale:(resource.Scale){scale}}} "
        f"d:(resource.infDecAmount){{Dec:{decimal}}} s:(string){text} Format:(resource.Format){form.value}}}"
    )


def _decimal(given: Quantity, sign: str) -> str:
    """Billionths, in machine words from the lowest on."""
    rest = int(given.number.copy_abs().scaleb(_NANO_DIGITS))
    words = []
    while rest:
        rest, word = divmod(rest, _WORD)
        words.append(str(word))
    negative = "true" if sign else "false"
    return (
        f"(*inf.Dec){{unscaled:(big.Int){{neg:(bool){negative} abs:(big.nat)[{' '.join(words)}]}} "
        f"scale:(inf.Scale){_NANO_DIGITS}}}"
    )
