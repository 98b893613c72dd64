"""Rules of whole objects, composed of rules of their parts, for the `Validation`s of families of types.

The registry reports errors of metadata. Kinds for which upstream reports at an update all that it does at a creation
report it with `as_created`, metadata included.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import objectmeta
from mockube.apiserver.kinds.common.checks import Check, all_of, immutable
from mockube.apiserver.kinds.common.objectmeta import SUBDOMAIN, NameRule
from mockube.apiserver.kinds.common.validation import Create, Update, Validation


def from_root(*checks: Check) -> Create:
    """The checks of an object from its root."""
    inner = all_of(*checks)
    return lambda tree: inner(tree, ROOT)


def as_created(create: Create, name: NameRule = SUBDOMAIN, *, namespaced: bool = True) -> Update:
    """Return an update check that repeats the checks of a new object."""

    def update(new: ReadOnlyTree, _old: ReadOnlyTree) -> Iterator[FieldError]:
        yield from objectmeta.check(new, name, namespaced=namespaced)
        yield from create(new)

    return update


def changed_metadata(name: NameRule = SUBDOMAIN) -> Update:
    """Return the check of a change of metadata, for kinds that check it after the rest."""

    def update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
        yield from objectmeta.check_update(new, old)
        yield from objectmeta.check_finalizers(new, name)

    return update


def repeat_create(create: Create) -> Update:
    """Return an update check that repeats the checks of a new object, except those of metadata."""
    return lambda new, _old: create(new)


def in_order(*updates: Update) -> Update:
    """All of them, in this order."""

    def update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
        for each_update in updates:
            yield from each_update(new, old)

    return update


def get_struct(tree: ReadOnlyTree, *names: str) -> ReadOnlyTree:
    """The struct at the end of a way, empty if it is not there."""
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
    """Forbid that a field changes, in words of its own."""

    def update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
        if new.get(name) == old.get(name) or not (new.get(name) or old.get(name)):
            return ()
        return (errors.forbidden(ROOT.child(name), detail),)

    return update


def part(check: Check, *names: str) -> Update:
    """The check of the struct at the end of the way, as it has become."""
    path: Path = ROOT.child(*names)
    return lambda new, _old: check(get_struct(new, *names), path)


def check_name_only(name: NameRule = SUBDOMAIN, *, namespaced: bool = True) -> Validation:
    """A kind of which there is nothing to say but its name, at any time."""
    return Validation(name=name, update=as_created(from_root(all_of()), name, namespaced=namespaced))
