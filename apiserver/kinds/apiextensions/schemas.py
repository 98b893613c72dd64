"""The schemas of a CustomResourceDefinition, and the defaults and rules in them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from mockube.apimachinery import errors
from mockube.apimachinery.cel.language import FULL_LANGUAGE, Language
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.regexp import matcher as regexp
from mockube.apimachinery.regexp.errors import RegexpError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common.checks import all_of, one_of, pointer
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.jsonschema.schema import RULES
from mockube.apiserver.kinds.jsonschema.structural import PRESERVE, check_structural, is_leaf
from mockube.apiserver.kinds.jsonschema.validate import is_known_format

from .defaults import check_defaults
from .rules import RuleContext, TotalCost, check_rule_fields, check_rules

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPE, _MAP_TYPE = "x-kubernetes-list-type", "x-kubernetes-map-type"
_MAP_KEYS: Final = "x-kubernetes-list-map-keys"

_NOT_SUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_UNSUPPORTED: Final = ("id", "$schema", "$ref", "patternProperties", "dependencies", "definitions")
_JUNCTORS: Final = ("allOf", "oneOf", "anyOf")
_REFUSED_IF_EMPTY: Final = frozenset({"additionalItems", "dependencies", "$ref"})
"""Keywords that are refused even with an empty value."""


_ROOT_FIELDS: Final = (
    *("Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum"),
    *("MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required"),
    *("Items", "Properties", "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations"),
)
_NOT_AT_ROOT: Final = (
    *("default", "enum", "maxProperties", "minProperties", *_JUNCTORS, "not", "additionalProperties"),
    *("patternProperties", "dependencies", "additionalItems", "definitions"),
    *(_MAP_KEYS, _LIST_TYPE, _MAP_TYPE),
)
"""Keywords that a root schema must not have if status is a subresource; flags must not be true."""
_FLAGS_NOT_AT_ROOT: Final = ("nullable", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string")


def _check_status_root(schema: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check a root schema with the status subresource: keywords that would not apply to status alone are not allowed."""
    kind = schema.get("type") or "object"
    is_named = schema.get("id") or schema.get("$schema") or schema.get("$ref") is not None
    if not is_named and kind != "object":
        detail = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield errors.invalid(path.child("type"), kind, detail)
    elif (
        is_named
        or any(schema.get(name) is not None for name in _NOT_AT_ROOT)
        or any(map(schema.get, _FLAGS_NOT_AT_ROOT))
    ):
        detail = f"only [{' '.join(_ROOT_FIELDS)}] fields are allowed at the root of the schema if the status subresource is enabled"
        yield errors.invalid(path, internal("apiextensions.JSONSchemaProps", schema), detail)


def check_schema(
    validation: ReadOnlyTree, path: Path, language: Language = FULL_LANGUAGE, *, has_status: bool = False
) -> Iterator[FieldError]:
    """Check a schema: its structure and keywords, and its defaults and rules if these are valid."""
    schema, path = validation.get("openAPIV3Schema"), path.child("openAPIV3Schema")
    if schema is None:
        return
    root_errors = [*_check_status_root(schema, path)] if has_status else []
    if schema.get("nullable"):
        root_errors.append(errors.forbidden(path.child("nullable"), "nullable cannot be true at the root"))
    parts = [*all_schemas(schema)]
    is_convertible = not any(map(_is_unsupported, parts))
    structural_errors = check_structural(schema, path) if is_convertible else []
    pattern_errors = _check_patterns(parts, path)
    if is_convertible and not (structural_errors or pattern_errors is None or pattern_errors):
        structural_errors = [*check_defaults(schema, path)]
    total, context = TotalCost(), None
    if is_convertible and not structural_errors and any(part.get(RULES) for part in parts):
        context = RuleContext(schema, total, root=True, language=language)
    keyword_errors, rule_errors = _check(schema, path, context)
    field_errors = [*root_errors, *structural_errors, *keyword_errors] or [*(pattern_errors or ())]
    if not field_errors and any(part.get("$schema") for part in parts):
        field_errors = [errors.invalid(path, "", "OpenAPIV3Schema 'schema' is not supported")]
    yield from field_errors
    yield from rule_errors
    yield from total.check(path)


def _is_unsupported(schema: ReadOnlyTree) -> bool:
    """Return whether a schema has keywords that prevent a structural schema: then its structure is not checked."""
    return schema.get("additionalItems") is not None or any(map(schema.get, _UNSUPPORTED))


def unknown_formats(schema: ReadOnlyTree) -> Iterator[str]:
    """Yield the formats of a schema that the API server ignores."""
    for part in all_schemas(schema):
        form = part.get("format", "")
        if form and not is_known_format(part.get("type", ""), form):
            yield form


def all_schemas(schema: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    """Yield every schema in a schema, outer ones first, in the order of `_inner`, without their paths."""
    pending = [schema]
    while pending:
        current = pending.pop()
        yield current
        inner: list[ReadOnlyTree] = []
        if isinstance(additional := current.get("additionalProperties"), dict):
            inner.append(additional)
        if properties := current.get("properties"):
            inner += properties.values()
        if (negated := current.get("not")) is not None:
            inner.append(negated)
        for name in _JUNCTORS:
            if parts := current.get(name):
                inner += parts
        if isinstance(items := current.get("items"), dict):
            inner.append(items)
        inner.reverse()
        pending += inner


def _check(
    schema: ReadOnlyTree, path: Path, context: RuleContext | None
) -> tuple[list[FieldError], list[FieldError]]:
    """Check a schema and every schema inside it: its keywords, and its rules if there is a context for them."""
    field_errors, rule_errors = _check_keywords(schema, path), list[FieldError]()
    for inner, inner_path in _inner_schemas(schema, path):
        inner_errors, inner_rule_errors = _check(
            inner, inner_path, _inner_context(schema, inner, inner_path, path, context)
        )
        field_errors += inner_errors
        rule_errors += inner_rule_errors
    if not _EXTENSIONS.isdisjoint(schema):
        field_errors += _CHECK_EXTENSIONS(schema, path)
    if schema.get(RULES):
        field_errors += check_rule_fields(schema, path)
        if not field_errors and context is not None:
            rule_errors += check_rules(context, path)
    return field_errors, rule_errors


def _inner_context(
    schema: ReadOnlyTree, inner: ReadOnlyTree, inner_path: Path, path: Path, context: RuleContext | None
) -> RuleContext | None:
    """Return the context of a schema that declares a part of the value, or None if the schema only restricts values."""
    if context is None:
        return None
    if schema.get(RULES):
        context.type()
    if inner is schema.get("items") or inner is schema.get("additionalProperties"):
        return context.element(inner, path)
    if inner_path.parent is not None and inner_path.parent == path.child("properties"):
        return context.property(str(inner_path.step)[1:-1], inner)
    return None


def _inner_schemas(schema: ReadOnlyTree, path: Path) -> Iterator[tuple[ReadOnlyTree, Path]]:
    """Yield the direct subschemas of a schema, except fields that are leaves."""
    additional, items = schema.get("additionalProperties"), schema.get("items")
    if isinstance(additional, dict):
        yield additional, path.child("additionalProperties")
    for name, field_schema in (schema.get("properties") or {}).items():
        if not is_leaf(field_schema):
            yield field_schema, path.child("properties").key(name)
    if schema.get("not") is not None:
        yield schema["not"], path.child("not")
    for name in _JUNCTORS:
        for index, alternative in enumerate(schema.get(name) or ()):
            yield alternative, path.child(name).index(index)
    if isinstance(items, dict):
        yield items, path.child("items")


def _check_patterns(parts: Iterable[ReadOnlyTree], path: Path) -> Sequence[FieldError] | None:
    """Refuse patterns that together have a higher cost than a single pattern may have.

    Return None if a pattern is invalid: the check of the structure reports that.
    """
    try:
        cost = sum(regexp.check(part["pattern"]) for part in parts if part.get("pattern"))
    except RegexpError:
        return None
    if cost <= regexp.MAX_COST:
        return ()
    detail = f"the patterns must have at most {regexp.MAX_COST} instructions together, but have {cost}"
    return (errors.forbidden(path, detail),)


# --- keywords


def _check_supported(schema: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    for name in _NOT_SUPPORTED:
        if schema.get(name) or (name in _REFUSED_IF_EMPTY and schema.get(name) is not None):
            yield errors.forbidden(path.child(name), f"{name} is not supported")
    if schema.get("type") == "null":
        detail = "type cannot be set to null, use nullable as an alternative"
        yield errors.forbidden(path.child("type"), detail)
    if isinstance(schema.get("items"), list):
        yield errors.forbidden(path.child("items"), "items must be a schema object and not an array")
    if schema.get("uniqueItems"):
        reason = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield errors.forbidden(path.child("uniqueItems"), reason)


def _check_struct_or_map(schema: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    additional = schema.get("additionalProperties")
    if not schema.get("properties") or additional is None or additional is True:
        return ()
    detail = "additionalProperties and properties are mutual exclusive"
    return (errors.forbidden(path.child("additionalProperties"), detail),)


_KNOWN_TYPES: Final = frozenset(_TYPES)
_TYPE: Final = one_of(*_TYPES)
_RESTRICTED: Final = frozenset({*_NOT_SUPPORTED, "items", "uniqueItems"})
"""Keywords that `_check_supported` checks."""


def _check_keywords(schema: ReadOnlyTree, path: Path) -> list[FieldError]:
    """Check the keywords of one schema. A definition has thousands, and few have keywords to check, so this has to be fast."""
    field_errors: list[FieldError] = []
    kind = schema.get("type")
    if kind and kind not in _KNOWN_TYPES:
        field_errors += _TYPE(kind, path.child("type"))
    if kind == "null" or not _RESTRICTED.isdisjoint(schema):
        field_errors += _check_supported(schema, path)
    if "additionalProperties" in schema:
        field_errors += _check_struct_or_map(schema, path)
    return field_errors


# --- extensions


def _check_preserves(schema: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    if schema.get(PRESERVE) is not False:
        return ()
    return (errors.invalid(path.child(PRESERVE), value=False, detail="must be true or undefined"),)


def _needs_type(extension: str, kind: str) -> Callable[[ReadOnlyTree, Path], Iterable[FieldError]]:
    def check(schema: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
        declared_type, path = schema.get("type", ""), path.child("type")
        if schema.get(extension) is None or declared_type == kind:
            return ()
        problem = f"must be {kind} if {extension} is specified"
        return (
            errors.invalid(path, declared_type, problem) if declared_type else errors.required(path, problem),
        )

    return check


def _items(schema: ReadOnlyTree) -> dict[str, Any]:
    items = schema.get("items")
    return items if isinstance(items, dict) else {}


def _check_set_items(schema: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Refuse items of a set that are not atomic: a set compares whole items."""
    items, path = _items(schema), path.child("items")
    if schema.get(_LIST_TYPE) != "set" or schema.get("type") != "array":
        return ()
    problem = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "array" and items.get(_LIST_TYPE) not in (None, "atomic"):
        return (errors.invalid(path.child(_LIST_TYPE), items.get(_LIST_TYPE), problem),)
    if items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic":
        return (errors.invalid(path.child(_MAP_TYPE), items.get(_LIST_TYPE), problem),)
    return ()


def _check_keys_need_map(schema: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    kind, path = schema.get(_LIST_TYPE), path.child(_LIST_TYPE)
    if not schema.get(_MAP_KEYS) or kind == "map":
        return ()
    problem = f"must be map if {_MAP_KEYS} is non-empty"
    return (errors.required(path, problem) if kind is None else errors.invalid(path, kind, problem),)


def _check_map_list(schema: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    if schema.get(_LIST_TYPE) != "map":
        return
    items, keys = schema.get("items"), schema.get(_MAP_KEYS) or []
    if not keys:
        detail = f"must not be empty if {_LIST_TYPE} is map"
        yield errors.required(path.child(_MAP_KEYS), detail)
    if items is None:
        yield errors.required(path.child("items"), f"must have a schema if {_LIST_TYPE} is map")
    elif not isinstance(items, dict):
        value = {"Schema": None, "JSONSchemas": items}
        problem = f"must only have a single schema if {_LIST_TYPE} is map"
        yield errors.invalid(path.child("items"), value, problem)
    kind = _items(schema).get("type", "")
    if isinstance(items, dict) and kind != "object":
        problem = f"must be object if parent array's {_LIST_TYPE} is map"
        yield errors.invalid(path.child("items", "type"), kind, problem)
    if kind == "object":
        yield from _check_keys(keys, _items(schema), path)


def _check_keys(keys: list[str], items: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    properties, seen = items.get("properties") or {}, set[str]()
    for key in keys:
        if key not in properties:
            problem = "entries must all be names of item properties"
            yield errors.invalid(path.child(_MAP_KEYS), keys, problem)
        elif properties[key].get("type") in ("array", "object"):
            field_path = path.child("items", "properties").key(key).child("type")
            problem = f"must be a scalar type if parent array's {_LIST_TYPE} is map"
            yield errors.invalid(field_path, items.get("type", ""), problem)
        if key in seen:
            yield errors.invalid(path.child(_MAP_KEYS), keys, "must not contain duplicate entries")
        seen.add(key)


def _check_items_have_keys(schema: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Refuse nullable items of a set or map, and keys that may be missing or null."""
    kind, items = schema.get(_LIST_TYPE), _items(schema)
    if kind not in ("set", "map"):
        return
    path = path.child("items")
    if items.get("nullable"):
        yield errors.forbidden(path.child("nullable"), f"cannot be nullable when {_LIST_TYPE} is {kind}")
    required_keys = frozenset(items.get("required") or ())
    for key in (schema.get(_MAP_KEYS) or ()) if kind == "map" else ():
        key_schema = (items.get("properties") or {}).get(key)
        if key_schema is None:
            continue
        field_path, reason = path.child("properties").key(key), f"this property is in {_MAP_KEYS}"
        if key not in required_keys and key_schema.get("default") is None:
            detail = f"{reason}, so it must have a default or be a required property"
            yield errors.required(field_path.child("default"), detail)
        if key_schema.get("nullable"):
            yield errors.forbidden(field_path.child("nullable"), f"{reason}, so it cannot be nullable")


_EXTENSIONS: Final = frozenset({PRESERVE, _LIST_TYPE, _MAP_TYPE, _MAP_KEYS})
_CHECK_EXTENSIONS: Final = all_of(
    _check_preserves,
    _needs_type(_MAP_TYPE, "object"),
    pointer(_MAP_TYPE, one_of("atomic", "granular")),
    _needs_type(_LIST_TYPE, "array"),
    _check_set_items,
    pointer(_LIST_TYPE, one_of("atomic", "set", "map")),
    _check_keys_need_map,
    _check_map_list,
    _check_items_have_keys,
)
