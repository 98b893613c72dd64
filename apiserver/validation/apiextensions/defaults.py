"""Defaults in a schema keep the schema that they are in."""

from collections.abc import Iterator

from apimachinery.errors import FieldError
from apimachinery.paths import ROOT, Path
from apiserver.crd.validate import checker
from apiserver.validation.rules import Tree


def check_defaults(schema: Tree, path: Path) -> Iterator[FieldError]:
    """Of a structural schema. Messages speak of the default as if it were a whole object."""
    if schema.get("default") is not None:
        at = str(path.child("default"))
        for error in checker(schema)(schema["default"], ROOT):
            yield FieldError(type=error.type, field=at, value=error.value, detail=error.detail)
    for name, inner in (schema.get("properties") or {}).items():
        yield from check_defaults(inner, path.child("properties").key(name))
    for name in ("additionalProperties", "items"):
        if isinstance(schema.get(name), dict):
            yield from check_defaults(schema[name], path.child(name))
