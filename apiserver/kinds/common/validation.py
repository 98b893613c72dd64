"""The `Validation` of a kind, and functions that compose its checks of checks of parts.

`kind_rules.py` reports errors of metadata. Kinds for which upstream repeats all checks of a creation at an update use
`as_created`, which checks metadata again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, TypeAlias

from msgspec import Struct, field

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree

from . import objectmeta
from .checks import Check, all_of, immutable
from .declared import NO_RULES, DeclaredRules
from .objectmeta import SUBDOMAIN, NameRule

Create: TypeAlias = Callable[[ReadOnlyTree], Iterable[FieldError]]
Update: TypeAlias = Callable[[ReadOnlyTree, ReadOnlyTree], Iterable[FieldError]]
"""Takes the new object and the old one."""


def _accept(_tree: ReadOnlyTree) -> Iterable[FieldError]:
    return ()


def accept_update(_new: ReadOnlyTree, _old: ReadOnlyTree) -> Iterable[FieldError]:
    """Accept the update of a subresource, for which only metadata is checked."""
    return ()


class RepeatedCheck(Enum):
    """The checks of metadata that a kind repeats at an update, after the generic checks."""

    CHANGE = "change"
    METADATA = "whole"
    CREATE = "create"
    """The checks of a new object, between those of the metadata and of its change."""


NO_CHECKS: Final[Sequence[RepeatedCheck]] = ()
CHANGE: Final[Sequence[RepeatedCheck]] = (RepeatedCheck.CHANGE,)
METADATA_AND_CHANGE: Final[Sequence[RepeatedCheck]] = (RepeatedCheck.METADATA, RepeatedCheck.CHANGE)
CREATE_AND_CHANGE: Final[Sequence[RepeatedCheck]] = (
    RepeatedCheck.METADATA,
    RepeatedCheck.CREATE,
    RepeatedCheck.CHANGE,
)


class Validation(Struct, frozen=True, kw_only=True):
    """The checks of a new object and of an updated one."""

    name: NameRule = SUBDOMAIN
    metadata_first: bool = True
    """Whether metadata is checked before the rest. Otherwise `create` and `update` check it, if at all."""
    repeated_checks: Sequence[RepeatedCheck] = CHANGE
    """The checks of metadata that an update repeats before the rest; through subresources only those of its change."""
    silent: frozenset[str] = frozenset()
    """Subresources whose updates do not check metadata again."""
    create: Create = _accept
    update: Update = accept_update
    subresources: Mapping[str, Update] = field(default_factory=dict)
    """The checks of updates through subresources that have their own, such as `status`."""
    declared: DeclaredRules | None = NO_RULES
    """The rules that upstream declares; they do not run for subresources, which keep the declared fields.

    None for kinds and minors without them, whose errors may repeat.
    """


def from_root(*checks: Check) -> Create:
    """Return a check of a new object that makes several checks from its root."""
    inner = all_of(*checks)
    return lambda tree: inner(tree, ROOT)


def as_created(create: Create, name: NameRule = SUBDOMAIN, *, namespaced: bool = True) -> Update:
    """Return an update check that repeats the checks of a new object."""

    def update(new: ReadOnlyTree, _old: ReadOnlyTree) -> Iterator[FieldError]:
        yield from objectmeta.check(new, name, namespaced=namespaced)
        yield from create(new)

    return update


def changed_metadata(name: NameRule = SUBDOMAIN) -> Update:
    """Return a check of a change of metadata, for kinds that check it after the rest."""

    def update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
        yield from objectmeta.check_update(new, old)
        yield from objectmeta.check_finalizers(new, name)

    return update


def repeat_create_checks(create: Create) -> Update:
    """Return an update check that repeats the checks of a new object, except those of metadata."""
    return lambda new, _old: create(new)


def in_order(*updates: Update) -> Update:
    """Return a check that makes several checks in order."""

    def update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
        for each_update in updates:
            yield from each_update(new, old)

    return update


def get_struct(tree: ReadOnlyTree, *names: str) -> ReadOnlyTree:
    """Return the struct at a path, or an empty one."""
    for name in names:
        tree = tree.get(name) or {}
    return tree


def immutable_fields(*names: str, absent: Any = None) -> Update:
    """Refuse to change the field at a path. Errors report `absent` for a missing field."""
    path = ROOT.child(*names)

    def update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
        *parents, name = names
        return immutable(
            get_struct(new, *parents).get(name, absent), get_struct(old, *parents).get(name, absent), path
        )

    return update


def not_updated(name: str, detail: str) -> Update:
    """Return a check that refuses a change of a field with its own message."""

    def update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
        if new.get(name) == old.get(name) or not (new.get(name) or old.get(name)):
            return ()
        return (errors.forbidden(ROOT.child(name), detail),)

    return update


def part(check: Check, *names: str) -> Update:
    """Return a check of the new struct at a path."""
    path: Path = ROOT.child(*names)
    return lambda new, _old: check(get_struct(new, *names), path)


def check_name_only(name: NameRule = SUBDOMAIN, *, namespaced: bool = True) -> Validation:
    """Return the validation of a kind of which only metadata is checked, at every write."""
    return Validation(name=name, update=as_created(from_root(all_of()), name, namespaced=namespaced))
