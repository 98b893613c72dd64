"""Validate, default and warn about objects by the rules of their kinds: `KindRules`, which the verbs use.

`Defaulter` sets defaults by the tables of the kinds, and as upstream's types declare. For each kind, the paths to the
structs with defaults are compiled once, from the schema; the rest of an object is never visited. As upstream, a struct
gets its defaults before the structs in it. A default is inserted at the place where Go would write it, so that the object
stays in normal form.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, ParamSpec, TypeAlias

from mockube.apimachinery.errors import DisplayedValue, FieldError
from mockube.apimachinery.schema.model import Schemas, SchemaType, Shape
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.component_base.clock import Clock

from .api_resource import Resource
from .built_in_kinds import NEWEST, Kinds
from .common import objectmeta
from .common.declared import NO_RULES
from .common.defaults import NOWHERE, Fill, Literals, Steps, round_up
from .common.validation import CHANGE, NO_CHECKS, RepeatedCheck, Validation
from .common.validation_context import validate_unprivileged

_NONE: Final = Validation(metadata_first=False, declared=None)
"""The validation of a kind that is not in the registry: only its metadata is checked."""


def _metadata(resource: Resource, tree: ReadOnlyTree) -> list[FieldError]:
    return objectmeta.check(tree, objectmeta.ANY_NAME, namespaced=resource.namespaced)


_P = ParamSpec("_P")


def check_create(resource: Resource, tree: ReadOnlyTree, kinds: Kinds = NEWEST) -> list[FieldError]:
    """Return the errors of a new object: those of its kind or, if there are none, those of the generic checks."""
    kind = kinds.validations.get(resource.group_kind, _NONE)
    field_errors = _check_new(kind, resource, tree)
    return field_errors if kind.declared is None else kind.declared.merge(field_errors, tree)


def _check_new(kind: Validation, resource: Resource, tree: ReadOnlyTree) -> list[FieldError]:
    if not kind.metadata_first:
        return [*kind.create(tree)] or _metadata(resource, tree)
    field_errors = objectmeta.check(tree, kind.name, namespaced=resource.namespaced)
    field_errors += kind.create(tree)
    # The other checks of every kind were done above.
    return field_errors or objectmeta.check_name(tree, objectmeta.ANY_NAME)


def check_update(
    resource: Resource, subresource: str, new: ReadOnlyTree, old: ReadOnlyTree, kinds: Kinds = NEWEST
) -> list[FieldError]:
    """Return the errors of an update. Most kinds repeat checks of metadata, as upstream."""
    kind = kinds.validations.get(resource.group_kind, _NONE)
    update = kind.subresources.get(subresource) if subresource else kind.update
    field_errors = _metadata(resource, new)
    # Valid metadata need not be checked a second time.
    changed = objectmeta.check_update(new, old) if field_errors else objectmeta.check_step(new, old)
    field_errors = [*field_errors, *changed]
    if update is not None:
        for repeated_checks in _repeated_checks(kind, subresource):
            if repeated_checks is RepeatedCheck.CHANGE:
                field_errors += [*changed, *objectmeta.check_finalizers(new, kind.name)]
            elif repeated_checks is RepeatedCheck.CREATE:
                field_errors += kind.create(new)
            else:
                field_errors += objectmeta.check(new, kind.name, namespaced=resource.namespaced)
        field_errors += update(new, old)
    if kind.declared is None:
        return field_errors
    return NO_RULES.merge(field_errors, new) if subresource else kind.declared.merge(field_errors, new, old)


def _repeated_checks(kind: Validation, subresource: str) -> Sequence[RepeatedCheck]:
    if not kind.metadata_first or subresource in kind.silent:
        return NO_CHECKS
    return CHANGE if subresource else kind.repeated_checks


def warn_create(resource: Resource, tree: ReadOnlyTree, kinds: Kinds = NEWEST) -> Iterable[str]:
    kind = kinds.warnings.get(resource.group_kind)
    return () if kind is None else kind.create(tree)


def warn_update(
    resource: Resource, subresource: str, new: ReadOnlyTree, old: ReadOnlyTree, kinds: Kinds = NEWEST
) -> Iterable[str]:
    kind = kinds.warnings.get(resource.group_kind)
    if kind is None:
        return ()
    update = kind.subresources.get(subresource) if subresource else kind.update
    return () if update is None else update(new, old)


# --- defaults

Visit: TypeAlias = Callable[[Any], None]

_RESOURCE_LIST: Final = "v1.ResourceList"
"""The only map type with defaults. OpenAPI has no definition of it, so this is its name in Go."""


class Defaulter:
    """The defaults of every built-in kind. The function for a struct is compiled at its first use."""

    def __init__(self, schemas: Schemas, *, clock: Clock, kinds: Kinds = NEWEST) -> None:
        self._schemas = schemas
        self._table = kinds.defaults(clock)
        self._lacks_fields = kinds.minor != NEWEST.minor
        """An older minor may not have all fields that have defaults."""
        self._structs: dict[str, Visit | None] = {}

    def default_object(self, api_version: str, kind: str, tree: Tree) -> None:
        """Set the defaults of a tree in normal form, in place. Only built-in kinds have defaults here."""
        struct = self._schemas.kind(api_version, kind)
        visit = self._struct(struct) if struct else None
        if visit is not None:
            visit(tree)

    def _struct(self, struct: SchemaType) -> Visit | None:
        name = struct.name
        if name not in self._structs:
            # A struct may contain itself. None of those that do has defaults.
            self._structs[name] = None
            self._structs[name] = self._compile(struct)
        return self._structs[name]

    def _compile(self, struct: SchemaType) -> Visit | None:
        own = self._table.get(struct.name, ())
        if own is NOWHERE:
            return None
        inner = {name: visit for name, field in struct.fields.items() if (visit := self._value(field.type))}
        steps = (*own, *_declared_defaults(struct))
        if steps:
            fills = tuple(
                _write(struct, step) if isinstance(step, Mapping) else step for step in steps if step
            )
            if self._lacks_fields:
                fills = (*fills, _drop_unknown(struct))
            return _visit_struct(fills, inner, list(struct.fields))
        return _descend(inner) if inner else None

    def _value(self, of: SchemaType) -> Visit | None:
        if of.go == _RESOURCE_LIST:
            return round_up
        if of.shape is Shape.STRUCT:
            return self._struct(of)
        if of.shape not in (Shape.LIST, Shape.MAP):
            return None
        visit = self._value(of.items)
        return visit and (_each_item(visit) if of.shape is Shape.LIST else _each_value(visit))


def _declared_defaults(struct: SchemaType) -> Steps:
    """Return the defaults that the struct's schema declares. Zero matters for pointers only, where Go distinguishes it from absent."""
    literals = {
        name: field.default
        for name, field in struct.fields.items()
        if field.default is not None and (field.default or field.pointer)
    }
    return (literals,) if literals else ()


def _write(struct: SchemaType, literals: Literals) -> Fill:
    rows = tuple(
        (name, value, struct.fields[name].pointer)
        for name, value in literals.items()
        if name in struct.fields  # an older minor may not have it
    )

    def fill(tree: Tree) -> None:
        for name, value, pointer in rows:
            current_value = tree.get(name)
            if current_value is None or not (current_value or pointer):
                tree[name] = value.copy() if isinstance(value, dict | list) else value

    return fill


def _drop_unknown(struct: SchemaType) -> Fill:
    def drop(tree: Tree) -> None:
        for name in tree.keys() - struct.fields.keys():
            del tree[name]

    return drop


def _visit_struct(fills: tuple[Fill, ...], inner: Mapping[str, Visit], fields: list[str]) -> Visit:
    position_of = {name: position for position, name in enumerate(fields)}.__getitem__
    visit_inner = _descend(inner)

    def visit_struct(tree: Tree) -> None:
        for fill in fills:
            fill(tree)
        names = sorted(tree, key=position_of)
        if names != [*tree]:  # these fills, or those of a struct around it, have added fields
            ordered = {name: tree[name] for name in names}
            tree.clear()
            tree.update(ordered)
        visit_inner(tree)

    return visit_struct


def _descend(inner: Mapping[str, Visit]) -> Visit:
    """Return a function that visits the structs in a struct that has no defaults itself."""
    rows = tuple(inner.items())

    def descend(tree: Tree) -> None:
        for name, visit in rows:
            value = tree.get(name)
            if value is not None:
                visit(value)

    return descend


def _each_item(visit: Visit) -> Visit:
    def visit_list(items: list[Any]) -> None:
        for item in items:
            visit(item)

    return visit_list


def _each_value(visit: Visit) -> Visit:
    def visit_map(values: dict[str, Any]) -> None:
        for value in values.values():
            visit(value)

    return visit_map


# --- the rules of all kinds


class KindRules:
    """The `Rules` of the kinds of one minor release."""

    def __init__(self, defaulter: Defaulter, kinds: Kinds = NEWEST) -> None:
        self._defaulter = defaulter
        self._internal_changes = kinds.internal_changes
        self.no_version: int | DisplayedValue = 0
        # For the newest kinds without `partial`, because every write calls these functions.
        newest = kinds is NEWEST
        self.check_create = check_create if newest else partial(check_create, kinds=kinds)
        self.check_update = check_update if newest else partial(check_update, kinds=kinds)
        self.warn_create = warn_create if newest else partial(warn_create, kinds=kinds)
        self.warn_update = warn_update if newest else partial(warn_update, kinds=kinds)

    def default(self, api_version: str, kind: str, tree: Tree) -> None:
        """Set the defaults of a tree in normal form, in place, and make the changes of upstream's internal type."""
        self._defaulter.default_object(api_version, kind, tree)
        for change in self._internal_changes.get((api_version, kind), ()):
            change(tree)

    def warn_refused(self, _resource: Resource, _new: Tree, _old: Tree) -> Iterable[str]:
        return ()


class UnprivilegedRules(KindRules):
    """The `Rules` of a cluster that allows no privileged containers."""

    def __init__(self, defaulter: Defaulter, kinds: Kinds = NEWEST) -> None:
        super().__init__(defaulter, kinds)
        self.check_create = _unprivileged(self.check_create)
        self.check_update = _unprivileged(self.check_update)


def _unprivileged(check: Callable[_P, list[FieldError]]) -> Callable[_P, list[FieldError]]:
    def check_unprivileged(*arguments: _P.args, **options: _P.kwargs) -> list[FieldError]:
        with validate_unprivileged():
            return check(*arguments, **options)

    return check_unprivileged
