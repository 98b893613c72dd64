"""Validate, default and warn about objects by the rules of their kinds.

`KindRules` is what the verbs use.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from mockube.apimachinery.errors import DisplayedValue, FieldError
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import objectmeta
from mockube.apiserver.kinds.common.validation import CHANGE, NO_CHECKS, Again, Validation
from mockube.apiserver.kinds.core.pod.pod_template import SUBRESOURCES, check_unprivileged
from mockube.apiserver.kinds.defaulter import Defaulter
from mockube.apiserver.kinds.internal_version import settle
from mockube.apiserver.kinds.registry import NEWEST, Kinds

_NONE: Final = Validation(metadata_first=False)
"""For a kind that is not in the registry: only metadata is checked."""


def _metadata(resource: Resource, tree: ReadOnlyTree) -> list[FieldError]:
    return objectmeta.check(tree, objectmeta.LEAST, namespaced=resource.namespaced)


def check_create(resource: Resource, tree: ReadOnlyTree, kinds: Kinds = NEWEST) -> list[FieldError]:
    """Return the errors of a new object: those of its kind or, if there are none, those of the generic checks."""
    kind = kinds.validations.get(resource.group_kind, _NONE)
    if not kind.metadata_first:
        return [*kind.create(tree)] or _metadata(resource, tree)
    field_errors = objectmeta.check(tree, kind.name, namespaced=resource.namespaced)
    field_errors += kind.create(tree)
    # The other checks of every kind were done above.
    return field_errors or objectmeta.check_name(tree, objectmeta.LEAST)


def check_update(
    resource: Resource, subresource: str, new: ReadOnlyTree, old: ReadOnlyTree, kinds: Kinds = NEWEST
) -> list[FieldError]:
    """Return the errors of an update. Most kinds repeat checks of metadata, as upstream."""
    kind = kinds.validations.get(resource.group_kind, _NONE)
    update = kind.subresources.get(subresource) if subresource else kind.update
    wrong = _metadata(resource, new)
    # Where nothing is wrong with metadata, saying so again would take as long.
    changed = objectmeta.check_update(new, old) if wrong else objectmeta.check_step(new, old)
    field_errors = [*wrong, *changed]
    if update is not None:
        for again in _said_again(kind, subresource):
            if again is Again.CHANGE:
                field_errors += [*changed, *objectmeta.check_finalizers(new, kind.name)]
            elif again is Again.CREATE:
                field_errors += kind.create(new)
            else:
                field_errors += objectmeta.check(new, kind.name, namespaced=resource.namespaced)
        field_errors += update(new, old)
    return field_errors


def _said_again(kind: Validation, subresource: str) -> Sequence[Again]:
    if not kind.metadata_first or subresource in kind.silent:
        return NO_CHECKS
    return CHANGE if subresource else kind.again


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


class KindRules:
    """The `Rules` of the kinds of one minor release."""

    def __init__(self, defaulter: Defaulter, kinds: Kinds = NEWEST) -> None:
        self._defaulter = defaulter
        self.no_version: int | DisplayedValue = 0
        # The functions themselves, for the newest kinds: every write calls them.
        newest = kinds is NEWEST
        self.check_create = check_create if newest else partial(check_create, kinds=kinds)
        self.check_update = check_update if newest else partial(check_update, kinds=kinds)
        self.warn_create = warn_create if newest else partial(warn_create, kinds=kinds)
        self.warn_update = warn_update if newest else partial(warn_update, kinds=kinds)

    def default(self, api_version: str, kind: str, tree: Tree) -> None:
        self._defaulter.default_object(api_version, kind, tree)
        settle(api_version, kind, tree)

    def warn_refused(self, _resource: Resource, _new: Tree, _old: Tree) -> Iterable[str]:
        return ()


class UnprivilegedRules(KindRules):
    """The `Rules` of a cluster that allows no privileged containers."""

    def __init__(self, defaulter: Defaulter, kinds: Kinds = NEWEST) -> None:
        super().__init__(defaulter, kinds)
        self.check_create = partial(_check_create, kinds=kinds)
        self.check_update = partial(_check_update, kinds=kinds)


def _check_create(resource: Resource, tree: ReadOnlyTree, kinds: Kinds) -> list[FieldError]:
    return [*check_create(resource, tree, kinds), *check_unprivileged(resource.group_kind, tree)]


def _check_update(
    resource: Resource, subresource: str, new: ReadOnlyTree, old: ReadOnlyTree, kinds: Kinds
) -> list[FieldError]:
    field_errors = check_update(resource, subresource, new, old, kinds)
    if subresource in SUBRESOURCES:
        field_errors += check_unprivileged(resource.group_kind, new)
    return field_errors
