"""The actions of controllers: a closed union, and the plan that lists them.

Data alone: `control.executor` executes it, and is the only writer of the controllers that plan.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Literal

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.resources import Key, Resource

AnyResource = Resource[Any]


class EventTemplate(Struct, frozen=True, kw_only=True):
    """The Event of one action: its texts may contain `{name}` and `{error}`; an empty reason records none."""

    about: ReadOnlyTree
    done: tuple[str, str] = ("", "")
    failed: tuple[str, str] = ("", "")


class ObjectRef(Struct, frozen=True):
    """An object to delete; nothing happens to another one that took its name since."""

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
    """Replace an object, or its status, at the resourceVersion that the body carries."""

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
    """Of an apply, which takes the fields over from other managers."""
    event: EventTemplate | None = None


def no_patches(_: ReadOnlyTree) -> tuple[Patch, ...]:
    return ()


class Create(Struct, frozen=True, kw_only=True):
    """Make objects of one resource, by slow start: 1, 2, 4 … at once, until a batch has an error."""

    resource: AnyResource
    bodies: tuple[ReadOnlyTree, ...]
    event: EventTemplate | None = None
    then: Callable[[ReadOnlyTree], tuple[Patch, ...]] = no_patches
    """What else is written of each object as soon as it is there: a head start, which the next round makes up for."""


class SlowStart(Struct, frozen=True, kw_only=True):
    """Effects that do not depend on each other: 1, 2, 4 … at once, until a batch has an error."""

    effects: tuple[Create | Update | Patch, ...]


class Adopt(Struct, frozen=True, kw_only=True):
    """Become the controller of orphans, after reading the owner uncached: it must still be the same and not deleting."""

    resource: AnyResource
    orphans: tuple[ObjectRef, ...]
    owner_resource: AnyResource
    owner: ReadOnlyTree
    finalizers: tuple[str, ...] = ()
    """Added with the owner's reference."""


class Release(Struct, frozen=True, kw_only=True):
    """Release objects that no longer match: remove the owner reference. NotFound counts as released."""

    resource: AnyResource
    objects: tuple[ObjectRef, ...]
    owner: ReadOnlyTree
    finalizers: tuple[str, ...] = ()
    """Removed with the owner's reference."""


class RemoveFinalizer(Struct, frozen=True, kw_only=True):
    """Remove a finalizer from objects, concurrently. NotFound counts as done."""

    resource: AnyResource
    objects: tuple[ObjectRef, ...]
    finalizer: str


class Remember(Struct, frozen=True):
    """Pass this value to the next reconciliation of the key; None deletes it."""

    memory: object


class RecordEvent(Struct, frozen=True, kw_only=True):
    """Record an Event about an object."""

    about: ReadOnlyTree
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


class Confirm(Struct, frozen=True, kw_only=True):
    """Continue only if `holds` is true of the server's objects, read past the caches.

    For irreversible actions that rest on an absence: the caches of two resources may differ in revision, and the
    object in question may not have arrived yet.
    """

    resource: AnyResource
    namespace: str
    name: str = ""
    """Only the object of this name is read; without it, all of the namespace."""
    holds: Callable[[Sequence[Any]], bool]
    """Of the views of what was found."""


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


class Write(Struct, frozen=True):
    """A write that succeeded; `answer` is the object that the server returned, or None after NotFound."""

    action: Action
    key: Key
    answer: ReadOnlyTree | None


class Outcome(Struct, frozen=True, kw_only=True):
    """The results of a plan's actions."""

    error: ApiError | None
    writes: tuple[Write, ...]

    def of(self, kind: type) -> tuple[Write, ...]:
        """The writes by actions of one kind."""
        return tuple(write for write in self.writes if isinstance(write.action, kind))


def no_next_plan(_: Outcome) -> "Plan | None":
    return None


class Plan(Struct, frozen=True, kw_only=True):
    """The result of one reconciliation: actions in their order, ended by the first that fails.

    `last` is called after them, with the error that ended them or None, and returns what is written in any case: the
    status. The key of a failed plan is requeued with backoff; that of a successful one is not.
    """

    actions: tuple[Action, ...] = ()
    last: Callable[[ApiError | None], tuple[Action, ...]] = no_final_actions
    then: Callable[[Outcome], "Plan | None"] = no_next_plan
    """Returns, from the outcome of the actions, the next plan of the same reconciliation."""
    again_after: timedelta | None = None
    """Requeue the key after this time, whether or not anything changes."""


EMPTY_PLAN = Plan()
