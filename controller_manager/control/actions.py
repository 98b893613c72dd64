"""What a controller may want done: a closed union of effects, and the plan that holds them.

Data alone: `runtime.executor` carries it out, and is the only writer of the controllers that plan.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.resources import Key, Resource

AnyResource = Resource[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTemplate:
    """The Event that tells of one effect: its texts may hold `{name}`, `{error}`; an empty reason says nothing."""

    about: ReadOnlyTree
    done: tuple[str, str] = ("", "")
    failed: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """An object to delete; nothing happens to another one that took its name since."""

    key: Key
    uid: str

    @classmethod
    def of(cls, obj: ReadOnlyTree) -> "ObjectRef":
        return cls(Key.of(obj), meta.uid(obj))


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Delete objects of one resource, all at once. One that is gone already counts as deleted."""

    resource: AnyResource
    victims: tuple[ObjectRef, ...]
    propagation: Literal["", "Background", "Foreground", "Orphan"] = ""
    saying: EventTemplate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Replace an object, or its status, at the resourceVersion that the body carries."""

    resource: AnyResource
    body: ReadOnlyTree
    subresource: str = ""
    saying: EventTemplate | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """Change a part of an object; a uid or resourceVersion in the patch's metadata is its precondition."""

    resource: AnyResource
    key: Key
    body: ReadOnlyTree
    kind: Literal["merge", "strategic", "apply"] = "merge"
    subresource: str = ""
    field_manager: str = ""
    """Of an apply, which takes the fields over from other managers."""
    saying: EventTemplate | None = None


def no_more(_: ReadOnlyTree) -> tuple[Patch, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Make objects of one resource, by slow start: 1, 2, 4 … at once, until a batch has an error."""

    resource: AnyResource
    bodies: tuple[ReadOnlyTree, ...]
    saying: EventTemplate | None = None
    then: Callable[[ReadOnlyTree], tuple[Patch, ...]] = no_more
    """What else is written of each object as soon as it is there: a head start, which the next round makes up for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowStart:
    """Effects that do not depend on each other: 1, 2, 4 … at once, until a batch has an error."""

    effects: tuple[Create | Update | Patch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """Become the controller of orphans, after reading the owner uncached: it must still be the same and not deleting."""

    resource: AnyResource
    orphans: tuple[ObjectRef, ...]
    owner_resource: AnyResource
    owner: ReadOnlyTree
    finalizers: tuple[str, ...] = ()
    """Added with the owner's reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Give up objects that no longer match: take the owner's reference out. One that is gone counts as released."""

    resource: AnyResource
    objects: tuple[ObjectRef, ...]
    owner: ReadOnlyTree
    finalizers: tuple[str, ...] = ()
    """Removed with the owner's reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFinalizer:
    """Take a finalizer out of objects, of all at once. One that is gone counts as done."""

    resource: AnyResource
    objects: tuple[ObjectRef, ...]
    finalizer: str


@dataclass(frozen=True, slots=True)
class Remember:
    """Give this to the next reconciliation of the key; None forgets what was remembered."""

    memory: object


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEvent:
    """Record an Event about an object."""

    about: ReadOnlyTree
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm:
    """Go on only if it holds of what the server has now, read past the caches.

    For what cannot be undone and rests on an absence: caches of two resources may be apart, and the object that speaks
    against it on its way.
    """

    resource: AnyResource
    namespace: str
    name: str = ""
    """Only the object of this name is asked for; without it, all of the namespace."""
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


def no_last(_: ApiError | None) -> tuple[Action, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Write:
    """A write that succeeded; `answer` is what the server returned, or None for an object that was gone."""

    action: Action
    key: Key
    answer: ReadOnlyTree | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of the actions of a plan."""

    error: ApiError | None
    writes: tuple[Write, ...]

    def of(self, kind: type) -> tuple[Write, ...]:
        """The writes by actions of one kind."""
        return tuple(write for write in self.writes if isinstance(write.action, kind))


def no_more_plans(_: Outcome) -> "Plan | None":
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What one reconciliation wants: actions in their order, ended by the first that fails.

    `last` is asked after them, with the error that ended them or None, for what is written even so: the status.
    A failed plan comes again with backoff, and so does none that succeeded.
    """

    actions: tuple[Action, ...] = ()
    last: Callable[[ApiError | None], tuple[Action, ...]] = no_last
    then: Callable[[Outcome], "Plan | None"] = no_more_plans
    """Decides, from what came of the actions, what follows them in the same reconciliation."""
    again_after: timedelta | None = None
    """Come back then, whether or not anything changes until then."""


NOTHING = Plan()
