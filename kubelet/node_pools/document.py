"""The documents of pools: what a file of pools contains, and what the other forms of pools become. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from mockube.component_base.suggestions import did_you_mean

from .pool import AMD64, PoolError, quote_short


class TaintDocument(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A taint, as in the `spec` of a Node."""

    key: str
    value: str = ""
    effect: str


class ImageDocument(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"
):
    """An image, as in the `status` of a Node."""

    names: tuple[str, ...]
    size_bytes: int


Amounts = Mapping[str, str | int | float]


class PoolDocument(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A pool in a file."""

    count: int
    name: str = ""
    instance_type: str = ""
    region: str = ""
    zones: tuple[str, ...] = ()
    architecture: str = AMD64
    os_image: str = ""
    roles: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    taints: tuple[TaintDocument, ...] = ()
    capacity: Amounts = {}
    allocatable: Amounts = {}
    reserved: Amounts = {}
    images: tuple[ImageDocument, ...] = ()
    unschedulable: bool = False


FIELDS: Final = tuple(field.encode_name for field in msgspec.structs.fields(PoolDocument))


def decode_all(tree: Any) -> list[PoolDocument]:
    """Decode a list of pools; raise PoolError if a field is unknown or has another type."""
    if not isinstance(tree, Sequence) or isinstance(tree, str | bytes):
        raise PoolError('pools must be a list, whose items have a "count" and other fields')
    return [_decode(item, f"pools[{index}]") for index, item in enumerate(tree)]


def _decode(tree: Any, path: str) -> PoolDocument:
    if not isinstance(tree, Mapping):
        raise PoolError(f"{path} must be an object with the fields of a pool")
    for field in tree:
        if field not in FIELDS:
            name = str(field)
            hint = did_you_mean(name, FIELDS) or f": one of {', '.join(FIELDS)}"
            raise PoolError(f"{path}: unknown field {quote_short(name)}{hint}")
    for field in ("labels", "annotations"):
        _check_texts(tree.get(field), f"{path}.{field}")
    try:
        return msgspec.convert({key: value for key, value in tree.items() if value is not None}, PoolDocument)
    except msgspec.ValidationError as error:
        raise PoolError(f"{path}{_type_problem(str(error))}") from error


def _check_texts(value: Any, path: str) -> None:
    """Check that all values are strings: the number or the boolean that YAML makes of a text has another text."""
    for key, text in value.items() if isinstance(value, Mapping) else ():
        if not isinstance(text, str):
            raise PoolError(
                f"{path}: the value of {quote_short(str(key))} must be a string: write it in quotes"
            )


def _type_problem(message: str) -> str:
    """Return the field and the problem of an error of msgspec."""
    problem, _, path = message.partition(" - at ")
    field, problem = (
        path.strip("`").removeprefix("$"),
        problem.replace("Object missing required field", "there is no"),
    )
    return f"{field}: {problem[:1].lower()}{problem[1:].replace('`', '')}"
