"""Deletions by the operator of what its resource needs: with an old cache it deletes what it then has to make again."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from mockube.operators.end_state import Identity

from .change import Change
from .plans import (
    CHANGE_SUBJECT,
    DELETE_OWNED,
    DELETE_SUBJECT,
    EDIT_OWNED,
    EVICT,
    NODE,
    RECREATE,
    RECREATE_STALE,
    SKEW,
    TERMINATE_NAMESPACE,
    Plan,
)

DELETIONS_MAY_FOLLOW: Final = frozenset(
    {
        *(CHANGE_SUBJECT, DELETE_SUBJECT, RECREATE, TERMINATE_NAMESPACE),
        *(DELETE_OWNED, EDIT_OWNED, EVICT, NODE, SKEW),
    }
)
"""Actions that change what the operator has to do, so that it may have to delete more than undisturbed."""


def repeated_deletions(
    plan: Plan,
    changes: Iterable[Change],
    undisturbed: Iterable[Change],
    user: str,
    needed: Iterable[Identity],
) -> Mapping[Identity, tuple[Sequence[Change], int]]:
    """Return the deletions of each needed object that a user deletes more often than undisturbed, and how often it does undisturbed."""
    if plan.ending or any(each.action in DELETIONS_MAY_FOLLOW for each in plan.disturbances):
        return {}
    expected = Counter(change.identity for change in undisturbed if _is_deletion_by(change, user))
    # The deletion of the first resource is one more.
    once_more = sum(each.action == RECREATE_STALE for each in plan.disturbances)
    deletions = defaultdict[Identity, list[Change]](list)
    for change in changes:
        if _is_deletion_by(change, user):
            deletions[change.identity].append(change)
    objects = {*needed}
    return {
        identity: (found, expected[identity])
        for identity, found in deletions.items()
        if identity in objects and len(found) > expected[identity] + once_more
    }


def _is_deletion_by(change: Change, user: str) -> bool:
    return change.user == user and change.begins_deletion
