"""A write to the store, as a run shows it."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.history.field_values import FieldChange, changes_of, is_below
from mockube.operators.end_state import Identity, field_lines, label_of

_MAX_FIELDS: Final = 2
_OF_SERVER: Final = tuple(
    f"metadata.{name}"
    for name in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
)


class Change(Struct, frozen=True, kw_only=True):
    """A write to the store."""

    seconds: float
    revision: int
    type: str
    identity: Identity
    resource: str = ""
    """As in a rule of RBAC, which watches of the operator have, too."""
    user: str
    author: str
    """The user, or what it is in a report."""
    verb: str
    before: ReadOnlyTree | None
    after: ReadOnlyTree | None
    paths: Sequence[str] = ()
    audit_id: str = ""
    """That of the request that wrote it."""

    @property
    def begins_deletion(self) -> bool:
        """Whether the object was not being deleted before: who removes its last finalizer then deletes nothing."""
        if self.before is not None and meta.is_deleting(self.before):
            return False
        return self.after is None or meta.is_deleting(self.after)

    def line(self) -> str:
        fields = self._fields() if self.type == "MODIFIED" else ""
        return f"{self.type} {label_of(self.identity)} by {self.author}{f': {fields}' if fields else ''}"

    def _fields(self) -> str:
        if self.before is None or self.after is None:
            return ", ".join(self.paths[:3])
        # The Changes of a Secret have no values.
        return changed_fields(self.identity, self.before, self.after) or ", ".join(self.paths[:3])


def changed_fields(identity: Identity, before: ReadOnlyTree, after: ReadOnlyTree) -> str:
    """Return what has changed of an object, without what the server sets: two fields with their values, and of a Secret without them."""
    fields = [each for each in changes_of(before, after) if not _is_of_server(each)]
    more = f"; and {len(fields) - _MAX_FIELDS} more fields" if len(fields) > _MAX_FIELDS else ""
    return f"{'; '.join(field_lines(identity[0], fields[:_MAX_FIELDS]))}{more}"


def _is_of_server(change: FieldChange) -> bool:
    return any(is_below(change.path, field) for field in _OF_SERVER)
