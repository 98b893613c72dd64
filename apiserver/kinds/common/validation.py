"""The record of one kind's validation, which is filled in for the registry."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Final, TypeAlias

from msgspec import Struct, field

from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common.objectmeta import SUBDOMAIN, NameRule

Create: TypeAlias = Callable[[ReadOnlyTree], Iterable[FieldError]]
Update: TypeAlias = Callable[[ReadOnlyTree, ReadOnlyTree], Iterable[FieldError]]
"""Takes the new object and the old one."""


def _accept(_tree: ReadOnlyTree) -> Iterable[FieldError]:
    return ()


def accept_update(_new: ReadOnlyTree, _old: ReadOnlyTree) -> Iterable[FieldError]:
    """Accept the update of a subresource, for which only metadata is checked."""
    return ()


class Again(Enum):
    """The checks of metadata that a kind repeats at an update, after the generic checks."""

    CHANGE = "change"
    WHOLE = "whole"
    CREATE = "create"
    """The checks of a new object, between the other two."""


NO_CHECKS: Final[Sequence[Again]] = ()
CHANGE: Final[Sequence[Again]] = (Again.CHANGE,)
WHOLE_AND_CHANGE: Final[Sequence[Again]] = (Again.WHOLE, Again.CHANGE)
AS_NEW_AND_CHANGE: Final[Sequence[Again]] = (Again.WHOLE, Again.CREATE, Again.CHANGE)


class Validation(Struct, frozen=True, kw_only=True):
    """The checks of a new object and of an updated one."""

    name: NameRule = SUBDOMAIN
    metadata_first: bool = True
    """Metadata is checked before the rest. Otherwise `create` and `update` check it, if at all."""
    again: Sequence[Again] = CHANGE
    """The checks of metadata that an update repeats before the rest; through subresources only those of its change."""
    silent: frozenset[str] = frozenset()
    """Subresources whose updates do not check metadata again."""
    create: Create = _accept
    update: Update = accept_update
    subresources: Mapping[str, Update] = field(default_factory=dict)
    """Updates through each subresource that has a say of its own, such as `status`."""
