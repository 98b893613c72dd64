"""The defaults in the schemas of a CustomResourceDefinition."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.schema import builtin
from mockube.apimachinery.tree import ReadOnlyTree, sorted_keys
from mockube.apiserver.kinds.jsonschema.embedded import EmbeddedError, coercer, embedded_checker
from mockube.apiserver.kinds.jsonschema.pruning import pruner, root_pruner
from mockube.apiserver.kinds.jsonschema.schema import OBJECT_FIELDS
from mockube.apiserver.kinds.jsonschema.structural import EMBEDDED, is_leaf
from mockube.apiserver.kinds.jsonschema.validate import checker
from mockube.apiserver.schema.decode import Decoder

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class _EnclosingObject(NamedTuple):
    """The object that contains a value: the custom object, or the innermost embedded object."""

    schema: ReadOnlyTree
    wrap: Callable[[Any], Any]
    """Returns the object that contains a value."""
    in_metadata: bool = False
    """Whether the value is in the object's apiVersion, kind or metadata."""

    def child(self, name: str, *, in_metadata: bool) -> "_EnclosingObject":
        return _EnclosingObject(
            self.schema, lambda value: self.wrap({name: value}), self.in_metadata or in_metadata
        )

    def item(self) -> "_EnclosingObject":
        return _EnclosingObject(self.schema, lambda value: self.wrap([value]), self.in_metadata)


def _enclosing_root(schema: ReadOnlyTree) -> _EnclosingObject:
    head = {"apiVersion": "validation/v1", "kind": "Validation"}
    return _EnclosingObject(
        {**schema, EMBEDDED: True}, lambda value: head | value if isinstance(value, dict) else value
    )


def check_defaults(schema: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Refuse defaults that violate their structural schema, and defaults of the custom object's apiVersion, kind and metadata."""
    yield from _check_defaults_in(schema, path, None)
    for name, inner in (schema.get("properties") or {}).items():
        if name in OBJECT_FIELDS:
            for default_path in _defaults_in(inner, path.child("properties").key(name)):
                yield errors.forbidden(default_path, f"must not be set in top-level {name}")


def _defaults_in(schema: ReadOnlyTree, path: Path) -> Iterator[Path]:
    if schema.get("default") is not None:
        yield path.child("default")
    for name, inner in (schema.get("properties") or {}).items():
        yield from _defaults_in(inner, path.child("properties").key(name))
    if isinstance(schema.get("items"), dict):
        yield from _defaults_in(schema["items"], path.child("items"))


def _check_defaults_in(
    schema: ReadOnlyTree, path: Path, enclosing_object: _EnclosingObject | None
) -> Iterator[FieldError]:
    """Check the defaults in a schema. The paths in messages start at the default."""
    is_root = enclosing_object is None
    is_object = enclosing_object is None or bool(schema.get(EMBEDDED))
    enclosing_object = _enclosing_root(schema) if enclosing_object is None or is_object else enclosing_object
    if schema.get("default") is not None:
        default, default_path = sorted_keys(schema["default"]), path.child("default")
        if enclosing_object.in_metadata:
            yield from _check_default_in_metadata(schema, default, default_path, enclosing_object)
        else:
            yield from _check_default(schema, default, default_path, is_root=is_root)
    for name, inner in (schema.get("properties") or {}).items():
        if "default" not in inner and is_leaf(inner):
            continue
        inner_object = enclosing_object.child(name, in_metadata=is_object and name in OBJECT_FIELDS)
        yield from _check_defaults_in(inner, path.child("properties").key(name), inner_object)
    # Upstream does not check defaults in additionalProperties.
    if isinstance(schema.get("items"), dict):
        yield from _check_defaults_in(schema["items"], path.child("items"), enclosing_object.item())


def _check_default_in_metadata(
    schema: ReadOnlyTree, default: Any, path: Path, enclosing_object: _EnclosingObject
) -> Iterable[FieldError]:
    """Check a default of apiVersion, kind or metadata within the object, which may have unknown fields."""
    field_errors = [*_check_embedded(enclosing_object.schema, enclosing_object.wrap(default), ROOT)]
    if field_errors:
        return (
            errors.invalid(path, default, f"must result in valid metadata: {errors.aggregate(field_errors)}"),
        )
    return _check_fields(schema, default, path)


def _check_default(schema: ReadOnlyTree, default: Any, path: Path, *, is_root: bool) -> Iterator[FieldError]:
    unknown: list[str] = []
    prune = root_pruner if is_root else pruner
    prune(schema, drop_null=False)(default, unknown)
    if unknown:
        yield errors.invalid(path, default, "must not have unknown fields")
    checked_schema = {**schema, EMBEDDED: True} if is_root else schema
    embedded_errors = [*_check_embedded(checked_schema, default, path)]
    yield from embedded_errors or _check_fields(schema, default, path)


def _check_fields(schema: ReadOnlyTree, default: Any, path: Path) -> Iterator[FieldError]:
    for error in checker(schema)(default, ROOT):
        field = path if error.field == str(ROOT) else f"{path}.{error.field}"
        yield FieldError(type=error.type, field=str(field), value=error.value, detail=error.detail)


def _check_embedded(schema: ReadOnlyTree, value: Any, path: Path) -> Iterable[FieldError]:
    coerce, check = coercer(schema), embedded_checker(schema)
    if coerce is None or check is None:
        return ()
    try:
        return check(coerce(value, path, _read_metadata), path)
    except EmbeddedError as error:
        return (error.error,)


def _read_metadata(value: Any, _path: Path) -> Any:
    return Decoder().decode(builtin.load().definition(OBJECT_META), value, strict=False).tree
