"""How a resource behaves where it does not behave like every other: data first, small functions where data will not do.

The algorithm of each verb is written once, in `registry/`; a strategy only answers its questions.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from msgspec import Struct, field

from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.disabled_fields import NONE_DISABLED, DisabledFields
from mockube.apiserver.user import User

Paths: TypeAlias = tuple[tuple[str, ...], ...]

MAIN = ""
"""As the name of a subresource: the resource itself."""

SPEC: Paths = (("spec",),)
STATUS: Paths = (("status",),)
METADATA: Paths = tuple(
    ("metadata", field) for field in ("labels", "annotations", "finalizers", "ownerReferences")
)
"""What clients may write of metadata: where a subresource leaves it alone, all of this."""

STATUS_ALONE: Mapping[str, Paths] = {
    MAIN: STATUS,
    "status": (*SPEC, *METADATA, ("metadata", "deletionTimestamp")),
}
"""As `resets`, where /status changes nothing but the status, and passes over a time of deletion."""

OWN_STATUS: Mapping[str, Paths] = {MAIN: STATUS, "status": (*SPEC, *METADATA)}
"""As `resets`, where /status changes nothing but the status."""

BACKGROUND, FOREGROUND, ORPHAN, UNSUPPORTED = "Background", "Foreground", "Orphan", "Unsupported"
"""What becomes of an object's dependents when it is deleted and nobody says what should."""


class Request(Struct, frozen=True, kw_only=True):
    """What a strategy may know of a request besides its object."""

    user: User
    now: datetime
    warn: Callable[[str], None]
    """Tells the client something besides the answer."""


PrepareUpdate: TypeAlias = Callable[[Tree, Tree, Request], None]
"""Changes the new object, knowing the old one."""


def _keep(_tree: Tree) -> None:
    """Nothing is special about its form, or when it is deleted."""


def _keep_new(_tree: Tree, _request: Request) -> None:
    """Nothing is special when it is created."""


def _not_gracefully(_tree: Tree, _seconds: int | None) -> int | None:
    return None


def _waits_for_finalizers(tree: Tree) -> bool:
    return bool(tree["metadata"].get("finalizers"))


class Strategy(Struct, frozen=True, kw_only=True):
    """One resource's answers. Functions change the tree they are given, which is nobody else's yet."""

    cleared: Paths = STATUS
    """What a new object cannot be given: it begins as it is when nothing is set."""
    resets: Mapping[str, Paths] = field(default_factory=lambda: {MAIN: STATUS, "status": SPEC})
    """For the resource and for each subresource that writes it: the paths that stay as they were, whatever was sent."""
    only: Mapping[str, Paths] = field(default_factory=dict)
    """For subresources that write a part and nothing else: the paths that change. `*` is every element of a list."""
    generation: Paths = ()
    """What makes a new generation when it changes, other than through /status."""
    empty_counts: bool = False
    """An empty list or map that was sent is a change, though none is stored: upstream compares without equating them."""
    first_generation: int = 0
    """What a new object begins with; 0: it has no generation."""
    create_on_update: bool = False
    unconditional_update: bool = True
    """An update may leave out the version that it was made of."""
    raw: tuple[str, ...] = ()
    """Fields that are kept as the bytes that a client sent, and never change."""
    disabled: DisabledFields = NONE_DISABLED
    """What is dropped of a new object, and of a changed one that did not have it, before it is prepared."""
    prepare_create: Callable[[Tree, Request], None] = _keep_new
    prepare_update: Mapping[str, PrepareUpdate] = field(default_factory=dict)
    """For the resource and for each subresource that writes it; after `resets` and `only`."""
    canonicalize: Callable[[Tree], None] = _keep
    """What an object that was found right is brought into the form of, before it is stored."""
    has_default_status: bool = False
    """A default stands for the status that a new object cannot be given. Validation does not see it yet."""
    grace: Callable[[Tree, int | None], int | None] = _not_gracefully
    """Seconds that an object is given to end when it is deleted, of what was asked; None: it is deleted at once."""
    pending: Callable[[Tree], bool] = _waits_for_finalizers
    """Whether an object that is deleted must wait for somebody."""
    prepare_delete: Callable[[Tree], None] = _keep
    """What happens to an object that is marked as being deleted, besides the mark."""
    has_plain_deletion: bool = False
    """Whether the mark is a time alone, without a period of grace and a new generation."""
    dependents: str = BACKGROUND
    cascading: str = BACKGROUND
    """What the old way means to say that dependents should go as well."""
    dependents_warning: str = ""
    """What a client is told that deletes without saying what should become of the dependents."""
    undeletable: Mapping[str, str] = field(default_factory=dict)
    """Why objects of these names cannot be deleted, unless their whole collection is."""
    checks_preconditions: bool = False
    """The resource compares the preconditions of a deletion by itself, in words of its own."""
    returns_deleted: bool = False
    """A deletion answers with the object as it last was, not with a Status."""


DEFAULT = Strategy()

COUNTED = Strategy(generation=SPEC, first_generation=1)
COUNTED_CONDITIONAL = Strategy(generation=SPEC, first_generation=1, unconditional_update=False)
UPSERTED = Strategy(create_on_update=True)
RETURNS_DELETED = Strategy(returns_deleted=True)
"""The strategies that many resources share."""


def none_when_empty(*paths: tuple[str, ...]) -> Callable[[Tree], None]:
    """Return a function that writes null for these lists where they are empty, as Go does for lists read from protobuf.

    `*` as a step is every element of a list.
    """

    def canonicalize(tree: Tree) -> None:
        for first, *rest in paths:
            if first in tree:
                tree[first] = _without_empty(tree[first], rest)

    return canonicalize


def _without_empty(value: Any, way: list[str]) -> Any:
    """Return a value with null for the empty lists at the end of the path. The value itself may be shared and stays."""
    if not way:
        return value or None
    if not value:
        return value
    step, *rest = way
    if step == "*":
        return [_without_empty(one, rest) for one in value]
    if step not in value:
        return value
    return value | {step: _without_empty(value[step], rest)}
