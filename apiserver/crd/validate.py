"""What is wrong with a value by its schema, in the words of upstream's OpenAPI library.

Paths are written as that library writes them: members of a map behind a dot, as fields are.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.crd.schema import ANYTHING, Schema, is_int_or_string, properties, values
from apiserver.crd.values import check_array, check_number, check_object, check_string, has_format, said
from apiserver.validation.rules import Check, every

_JSON: Final = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}
_FITS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "object": lambda value: value.__class__ is dict,
    "array": lambda value: value.__class__ is list,
    "string": lambda value: value.__class__ is str,
    "boolean": lambda value: value.__class__ is bool,
    "integer": lambda value: value.__class__ is int or (value.__class__ is float and value.is_integer()),
    "number": lambda value: value.__class__ in (int, float),
}
_OF_CLASS: Final[Mapping[type, Callable[[Schema], Check]]] = {
    str: check_string,
    int: check_number,
    float: check_number,
    list: check_array,
    dict: check_object,
}


def checker(schema: Schema) -> Check:
    """Checks a value and all that is in it."""
    own = _own(schema)
    nullable = bool(schema.get("nullable"))

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        return () if value is None and nullable else own(value, path)

    return check


def _own(schema: Schema) -> Check:
    checks = [_type(schema)] if schema.get("type") or is_int_or_string(schema) else []
    checks += [_combined(schema)] if any(schema.get(name) for name in _COMBINED) else []
    checks += [_inner(schema), _limits(schema)]
    if schema.get("enum"):
        checks.append(_enum(schema["enum"]))
    return every(*checks)


# --- what it is


def _type(schema: Schema) -> Check:
    allowed = ("integer", "string") if is_int_or_string(schema) else (schema["type"],)
    fits, expected, form = [_FITS[name] for name in allowed], ",".join(allowed), schema.get("format", "")

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        if not any(fit(value) for fit in fits):
            found = _JSON[value.__class__]
            problem = f"{said(path)} in body must be of type {expected}: {_quoted(found)}"
            return (errors.type_invalid(path, found, problem),)
        if form and value.__class__ is str and not has_format(value, form):
            problem = f"{said(path)} in body must be of type {form}: {_quoted(value)}"
            return (errors.type_invalid(path, value, problem),)
        return ()

    return check


def _quoted(text: str) -> str:
    return f'"{text}"'


def _enum(allowed: list[Any]) -> Check:
    shown = [value if isinstance(value, str) else str(value) for value in allowed]

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        return () if value in allowed else (errors.not_supported(path, value, shown),)

    return check


def _limits(schema: Schema) -> Check:
    by_class = {cls: make(schema) for cls, make in _OF_CLASS.items()}

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        found = by_class.get(value.__class__)
        return () if found is None else found(value, path)

    return check


# --- what is in it


def _inner(schema: Schema) -> Check:
    known = {name: checker(inner) for name, inner in sorted(properties(schema).items())}
    others = values(schema)
    rest = None if others is None or others is ANYTHING else checker(others)
    elements = checker(schema["items"]) if schema.get("items") else None
    defaulted = {name for name, inner in properties(schema).items() if inner.get("default") is not None}
    required = [name for name in schema.get("required") or () if name not in defaulted]

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        found: list[FieldError] = []
        if value.__class__ is list and elements is not None:
            for index, item in enumerate(value):
                found += elements(item, path.index(index))
        elif value.__class__ is dict:
            if rest is not None:
                for name in sorted(value.keys() - known.keys()):
                    found += rest(value[name], path.child(name))
            for name, inner in known.items():
                if name in value:
                    found += inner(value[name], path.child(name))
            found += [errors.required(path.child(name)) for name in required if name not in value]
        return found

    return check


# --- schemas of which some must hold


def _combined(schema: Schema) -> Check:
    checks = [make(schema[name]) for name, make in _COMBINED.items() if schema.get(name)]
    return every(*checks)


def _all_of(schemas: list[Schema]) -> Check:
    each = [checker(schema) for schema in schemas]

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        failed = [found for one in each if (found := [*one(value, path)])]
        return [error for found in failed for error in found] + (
            [_unmet(path, "must validate all the schemas (allOf)")] if failed else []
        )

    return check


def _any_of(schemas: list[Schema]) -> Check:
    each = [checker(schema) for schema in schemas]

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        tried = [[*one(value, path)] for one in each]
        if not all(tried):
            return ()
        return [_unmet(path, "must validate at least one schema (anyOf)"), *min(tried, key=len)]

    return check


def _one_of(schemas: list[Schema]) -> Check:
    each = [checker(schema) for schema in schemas]

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        valid = sum(not [*one(value, path)] for one in each)
        if valid == 1:
            return ()
        found = f"Found {valid} valid alternatives" if valid else "Found none valid"
        return (_unmet(path, f"must validate one and only one schema (oneOf). {found}"),)

    return check


def _not(schema: Schema) -> Check:
    inner = checker(schema)

    def check(value: Any, path: Path) -> Iterable[FieldError]:
        return () if [*inner(value, path)] else (_unmet(path, "must not validate the schema (not)"),)

    return check


def _unmet(path: Path, problem: str) -> FieldError:
    return errors.invalid(path, "", f"{_quoted(said(path))} {problem}")


_COMBINED: Final[Mapping[str, Callable[[Any], Check]]] = {
    "anyOf": _any_of,
    "oneOf": _one_of,
    "allOf": _all_of,
    "not": _not,
}
