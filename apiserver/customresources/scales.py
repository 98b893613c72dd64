"""Check at every write that the fields of the subresource `scale` are numbers and strings."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from mockube.apimachinery import errors, gotext
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.gonumbers import as_decoded_by_go
from mockube.apimachinery.paths import ROOT
from mockube.apiserver.kinds.api_resource import Replicas

_MAX_INT32: Final = 2**31 - 1
_GO_TYPES: Final = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    type(None): "<nil>",
}


class AccessorError(ValueError):
    """A value on the path has another type; the message is upstream's."""


class ScalePaths(NamedTuple):
    """The paths of the fields of a Scale in a definition's objects."""

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...]

    @classmethod
    def of(cls, replicas: Replicas) -> "ScalePaths":
        return cls(tuple(replicas.spec_path), tuple(replicas.status_path), tuple(replicas.selector))

    def check(self, tree: Mapping[str, Any], *, only_status: bool) -> Iterator[FieldError]:
        if not only_status:
            yield from _check_number(tree, self.spec_replicas)
        yield from _check_number(tree, self.status_replicas)
        if self.selector:
            try:
                nested_value(tree, self.selector, str)
            except AccessorError as error:
                yield errors.invalid(_field(self.selector), "", str(error))


def nested_value(tree: Any, path: tuple[str, ...], expected: type) -> Any:
    """Return the value at a path, None if there is none; null is a value of another type."""
    value = tree
    for index, step in enumerate(path):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise _accessor_error(path[: index + 1], value, "map[string]interface{}")
        if step not in value:
            return None
        value = value[step]
    if value.__class__ in (int, float):
        value = as_decoded_by_go(value)
    if value.__class__ is not expected:
        raise _accessor_error(path, value, _GO_TYPES[expected])
    return value


def _check_number(tree: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[FieldError]:
    try:
        number = nested_value(tree, path, int) or 0
    except AccessorError as error:
        yield errors.invalid(_field(path), 0, str(error))
        return
    if number < 0:
        yield errors.invalid(_field(path), number, "should be a non-negative integer")
    elif number > _MAX_INT32:
        yield errors.invalid(_field(path), number, f"should be less than or equal to {_MAX_INT32}")


def _field(path: tuple[str, ...]) -> Any:
    return ROOT.child("." + ".".join(path))


def _accessor_error(path: tuple[str, ...], value: Any, expected: str) -> AccessorError:
    actual_type = _GO_TYPES[value.__class__]
    return AccessorError(
        f".{'.'.join(path)} accessor error: {_go_text(value)} is of the type {actual_type}, expected {expected}"
    )


def _go_text(value: Any) -> str:
    """Format a value like Go's `%v`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_go_text(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_go_text, value))}]"
    if isinstance(value, str):
        return value
    return (
        "<nil>"
        if value is None
        else gotext.format_v(as_decoded_by_go(value) if value.__class__ is int else value)
    )
