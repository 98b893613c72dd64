"""The plan that a reconciliation returns, and its actions, as data.

`control.executor` executes them; controllers that return plans write nothing themselves.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Literal

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.resources import AnyResource, Key


class EventTemplate(Struct, frozen=True, kw_only=True):
    """The Events of an action's success and failure, each a reason and a message; an empty reason records no Event.

    Messages may contain `{name}` and, after a failure, `{error}`.
    """

    about: ReadOnlyTree
    on_success: tuple[str, str] = ("", "")
    on_failure: tuple[str, str] = ("", "")


class ObjectRef(Struct, frozen=True):
    """The key and uid of an object: an action on it does not affect a later object of the same name."""

    key: Key
    uid: str

    @classmethod
    def of(cls, obj: ReadOnlyTree) -> "ObjectRef":
        return cls(Key.of(obj), meta.uid(obj))


class Delete(Struct, frozen=True, kw_only=True):
    """Delete objects of one resource, concurrently. NotFound counts as deleted."""

    resource: AnyResource
    objects: tuple[ObjectRef, ...]
    propagation: Literal["", "Background", "Foreground", "Orphan"] = ""
    event: EventTemplate | None = None


class Update(Struct, frozen=True, kw_only=True):
    """Replace an object, or its status, if it still has the resourceVersion of the body."""

    resource: AnyResource
    body: ReadOnlyTree
    subresource: str = ""
    event: EventTemplate | None = None


class Patch(Struct, frozen=True, kw_only=True):
    """Change a part of an object; a uid or resourceVersion in the patch's metadata is its precondition."""

    resource: AnyResource
    key: Key
    body: ReadOnlyTree
    kind: Literal["merge", "strategic", "apply"] = "merge"
    subresource: str = ""
    field_manager: str = ""
    """The field manager of a server-side apply, which is forced: it takes fields over from other managers."""
    event: EventTemplate | None = None


def no_patches(_: ReadOnlyTree) -> tuple[Patch, ...]:
    return ()


class Create(Struct, frozen=True, kw_only=True):
    """Create objects of one resource by slow start: in batches of 1, 2, 4 …, until a batch has an error."""

    resource: AnyResource
    bodies: tuple[ReadOnlyTree, ...]
    event: EventTemplate | None = None
    then: Callable[[ReadOnlyTree], tuple[Patch, ...]] = no_patches
    """Returns further patches of each created object. If one fails, a later reconciliation makes up for it."""


class SlowStart(Struct, frozen=True, kw_only=True):
    """Execute independent actions by slow start: in batches of 1, 2, 4 …, until a batch has an error."""

    effects: tuple[Create | Update | Patch, ...]


class Adopt(Struct, frozen=True, kw_only=True):
    """Become the controller of orphans, after an uncached read of the owner, which must not be deleted or replaced."""

    resource: AnyResource
    orphans: tuple[ObjectRef, ...]
    owner_resource: AnyResource
    owner: ReadOnlyTree
    finalizers: tuple[str, ...] = ()
    """Finalizers that are added with the owner reference."""


class Release(Struct, frozen=True, kw_only=True):
    """Release objects that no longer match: remove the owner reference. NotFound counts as released."""

    resource: AnyResource
    objects: tuple[ObjectRef, ...]
    owner: ReadOnlyTree
    finalizers: tuple[str, ...] = ()
    """Finalizers that are removed with the owner reference."""


class RemoveFinalizer(Struct, frozen=True, kw_only=True):
    """Remove a finalizer from objects, concurrently. NotFound counts as done."""

    resource: AnyResource
    objects: tuple[ObjectRef, ...]
    finalizer: str


class Remember(Struct, frozen=True):
    """Pass a value to the next reconciliation of the key; None deletes the previous value."""

    memory: object


class RecordEvent(Struct, frozen=True, kw_only=True):
    """Record an Event about an object."""

    about: ReadOnlyTree
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class Confirm(Struct, frozen=True, kw_only=True):
    """Continue only if a condition holds for the server's objects, which are listed without the caches.

    It precedes irreversible actions that depend on the absence of an object: the caches of two resources may have
    different revisions, so that an object may be missing from one of them.
    """

    resource: AnyResource
    namespace: str
    name: str = ""
    """The name of the only object to read; if empty, all objects of the namespace are read."""
    holds: Callable[[Sequence[Any]], bool]
    """The condition; it takes the views of the objects that were found."""


Action = (
    Create
    | Delete
    | Update
    | Patch
    | SlowStart
    | Adopt
    | Release
    | RemoveFinalizer
    | Remember
    | RecordEvent
    | Confirm
)


def no_final_actions(_: ApiError | None) -> tuple[Action, ...]:
    return ()


class CompletedWrite(Struct, frozen=True):
    """A write that succeeded; `response` is the object that the server returned, or None after NotFound."""

    action: Action
    key: Key
    response: ReadOnlyTree | None


class PlanResult(Struct, frozen=True, kw_only=True):
    """The results of a plan's actions."""

    error: ApiError | None
    writes: tuple[CompletedWrite, ...]

    def of(self, kind: type) -> tuple[CompletedWrite, ...]:
        """Return the writes by actions of one type."""
        return tuple(write for write in self.writes if isinstance(write.action, kind))


def no_next_plan(_: PlanResult) -> "Plan | None":
    return None


class Plan(Struct, frozen=True, kw_only=True):
    """The result of a reconciliation: actions that are executed in order, up to the first that fails.

    The key is requeued with backoff if an action fails.
    """

    actions: tuple[Action, ...] = ()
    last: Callable[[ApiError | None], tuple[Action, ...]] = no_final_actions
    """Returns the actions to execute in any case, such as the status update; takes the error of the actions, or None."""
    then: Callable[[PlanResult], "Plan | None"] = no_next_plan
    """Returns the next plan of the same reconciliation, given the outcome of the actions; None if there is none."""
    requeue_after: timedelta | None = None
    """The time after which the key is requeued, even without a change."""
    counted: int = 0
    """The number of objects that the reconciliation looked at: after many, changes wait longer for the next one."""


EMPTY_PLAN = Plan()
