"""Validation of values by their atoms, with the library's errors."""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from mockube.apimachinery.patch import gofmt

from .atoms import Atom, ListAtom, MapAtom, Scalar, TypedError, Unaddressable, Untyped
from .elements import FIELD, INDEX, Element, format_element

_Errors: TypeAlias = Sequence[tuple[str, str]]

_MESSAGES: Final = {
    Scalar.NUMERIC: lambda value: f"expected numeric (int or float), got {gofmt.go_type(value)}",
    Scalar.STRING: lambda value: (
        f"expected string, got &value.valueUnstructured{{Value:{gofmt.format_go_syntax(value)}}}"
    ),
    Scalar.BOOLEAN: lambda value: f"expected boolean, got &{{{gofmt.format_verb_v(value)}}}",
    Scalar.UNTYPED: lambda value: f"expected any scalar, got &{{{gofmt.format_verb_v(value)}}}",
}

_ACCEPTED: Final = {
    Scalar.NUMERIC: (int, float),
    Scalar.STRING: (str,),
    Scalar.BOOLEAN: (bool,),
    Scalar.UNTYPED: (str, int, float, bool),
}


def validate(atom: Atom, value: Any, *, duplicates: bool = False) -> None:
    """Raise `TypedError` if a value is invalid. With `duplicates`, lists can contain duplicate items, as stored ones do."""
    if errors := _Validator(duplicates=duplicates).errors(atom, value):
        raise TypedError(errors)


class _Validator:
    """A validator, which returns errors with their relative paths. Null is valid for every type."""

    __slots__ = ("_duplicates",)

    def __init__(self, *, duplicates: bool) -> None:
        self._duplicates = duplicates

    def errors(self, atom: Atom, value: Any) -> _Errors:
        if value is None or isinstance(atom, Untyped):
            return ()
        if isinstance(atom, Scalar):
            return () if type(value) in _ACCEPTED[atom] else [("", _MESSAGES[atom](value))]
        if isinstance(atom, MapAtom):
            return self._map_errors(atom, value)
        return self._list_errors(atom, value)

    def _map_errors(self, atom: MapAtom, value: Any) -> _Errors:
        if not isinstance(value, dict):
            return [("", f"expected map, got &{{{gofmt.format_verb_v(value)}}}")]
        errors: list[tuple[str, str]] = []
        for name, item in value.items():
            member = atom.member(name)
            if member is None:
                # The library stops at the first undeclared field.
                return [*errors, (f".{name}", "field not declared in schema")]
            errors += _prefix_errors(FIELD + name, self.errors(member, item))
        return errors

    def _list_errors(self, atom: ListAtom, value: Any) -> _Errors:
        if not isinstance(value, list):
            return [("", f"expected list, got &{{{gofmt.format_verb_v(value)}}}")]
        errors: list[tuple[str, str]] = []
        seen = set()
        for position, item in enumerate(value):
            element = f"{INDEX}{position}"
            if not atom.atomic:
                try:
                    element = atom.element(item)
                except Unaddressable as error:
                    return [*errors, ("", f"element {position}: {error}")]
                if element in seen and not self._duplicates:
                    errors.append(("", f"duplicate entries for key {format_element(element)}"))
                seen.add(element)
            errors += _prefix_errors(element, self.errors(atom.items, item))
        return errors


def _prefix_errors(element: Element, errors: _Errors) -> _Errors:
    return [(format_element(element) + path, message) for path, message in errors] if errors else errors
