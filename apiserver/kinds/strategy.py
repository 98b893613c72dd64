"""Strategies: the differences between resources, as data, or as small functions where data is not enough.

The algorithm of each verb is written once, in `registry/`. A strategy provides the parts that differ by resource: above
all the paths of fields that a write may change, resets, or drops because their feature gate is off.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.user import User

Path: TypeAlias = tuple[str, ...]
Paths: TypeAlias = tuple[Path, ...]

EACH_ITEM: Final = "*"
"""The step of a path to all elements of a list, each matched by its index; in paths of gates, also to all values of a map."""

MAIN = ""
"""The name of the resource itself in tables by subresource."""

SPEC: Paths = (("spec",),)
STATUS: Paths = (("status",),)
METADATA: Paths = tuple(
    ("metadata", field) for field in ("labels", "annotations", "finalizers", "ownerReferences")
)
"""The writable fields of metadata, which some subresources must not change."""

STATUS_ALONE: Mapping[str, Paths] = {
    MAIN: STATUS,
    "status": (*SPEC, *METADATA, ("metadata", "deletionTimestamp")),
}
"""The `resets` of a resource whose /status changes only the status, and ignores a deletionTimestamp."""

OWN_STATUS: Mapping[str, Paths] = {MAIN: STATUS, "status": (*SPEC, *METADATA)}
"""The `resets` of a resource whose /status changes only the status."""

BACKGROUND, FOREGROUND, ORPHAN, UNSUPPORTED = "Background", "Foreground", "Orphan", "Unsupported"
"""The default propagation policies of a deletion."""

# --- fields of feature gates


class Gate(NamedTuple):
    """The paths of the fields of a feature gate. An object that already has one of them may use all of them."""

    paths: tuple[str, ...]
    drops_empty: bool = False
    """Whether a struct that is empty without the field is dropped with it."""
    name: str = ""
    """The name of the gate, if this server implements it both ways."""

    def with_prefix(self, prefix: str) -> "Gate":
        return self._replace(paths=tuple(f"{prefix}.{path}" for path in self.paths))


class _Field(NamedTuple):
    """A field of a gate, or a field on the path to one, which has no gate."""

    gate: Gate | None
    inner: "_Fields"
    is_collection: bool
    """Whether `inner` has the fields of each element of a list or value of a map."""


_Fields: TypeAlias = Mapping[str, _Field]
"""The fields of a struct by their names."""


class _FieldUse(NamedTuple):
    """The place of a gate's field in an object, and the struct that contains it."""

    gate: Gate
    holder: Tree
    field: str
    parent: Any
    key: Any


class DisabledFields:
    """The fields of disabled feature gates, which are dropped from written objects unless the stored object uses them.

    The paths of all gates are compiled into one tree of steps, so that an object is walked once.
    """

    def __init__(self, gates: Sequence[Gate]) -> None:
        self.gates = tuple(gates)
        self.paths = [path for gate in gates for path in gate.paths]
        steps: dict[str, Any] = {}
        for gate in gates:
            for path in gate.paths:
                *way, last = path.split(".")
                inner = steps
                for step in way:
                    inner = inner.setdefault(step, {})
                inner[last] = gate
        self._fields = _compile(steps)

    def without_gates(self, names: Collection[str]) -> "DisabledFields":
        """Return the disabled fields when some gates are on."""
        gates = [gate for gate in self.gates if gate.name not in names]
        return self if len(gates) == len(self.gates) else DisabledFields(gates)

    def drop(self, new: Tree, old: ReadOnlyTree | None) -> None:
        """Drop the fields of gates that the old object, if there is one, does not use."""
        if not self._fields:
            return
        uses: list[_FieldUse] = []
        _find(new, self._fields, uses, None, None)
        if not uses:
            return
        used: list[_FieldUse] = []
        if old is not None:
            _find(old, self._fields, used, None, None)
        in_use = {id(use.gate) for use in used}
        for use in uses:
            if id(use.gate) not in in_use:
                _drop(use)


def _compile(steps: Mapping[str, Any]) -> _Fields:
    fields = {}
    for name, below in steps.items():
        if isinstance(below, Gate):
            fields[name] = _Field(below, {}, is_collection=False)
        else:
            is_collection = EACH_ITEM in below
            inner = _compile(below[EACH_ITEM] if is_collection else below)
            fields[name] = _Field(None, inner, is_collection)
    return fields


def _find(value: Any, fields: _Fields, uses: list[_FieldUse], parent: Any, key: Any) -> None:
    for name in fields:
        if name not in value or (child := value[name]) is None:
            continue
        gate, inner, is_collection = fields[name]
        if gate is not None:
            uses.append(_FieldUse(gate, value, name, parent, key))
        elif is_collection:
            for member_key, member in _each(child):
                _find(member, inner, uses, child, member_key)
        else:
            _find(child, inner, uses, value, name)


def _each(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if value.__class__ is dict else enumerate(value)


def _drop(use: _FieldUse) -> None:
    del use.holder[use.field]
    if use.gate.drops_empty and not use.holder:
        del use.parent[use.key]


NONE_DISABLED: Final = DisabledFields(())


# --- strategies


class StrategyContext(Struct, frozen=True, kw_only=True):
    """The parts of a request that a strategy uses besides the object."""

    user: User
    now: datetime
    warn: Callable[[str], None]
    """Adds a warning to the response."""


PrepareUpdate: TypeAlias = Callable[[Tree, Tree, StrategyContext], None]
"""Changes the new object of an update; takes the new and the old object, and the request."""


def _keep(_tree: Tree) -> None:
    """Change nothing."""


def _keep_new(_tree: Tree, _request: StrategyContext) -> None:
    """Change nothing of a new object."""


def _not_gracefully(_tree: Tree, _seconds: int | None) -> int | None:
    return None


def _waits_for_finalizers(tree: Tree) -> bool:
    return bool(tree["metadata"].get("finalizers"))


class Strategy(Struct, frozen=True, kw_only=True):
    """The rules of one resource. Functions change their tree in place: it is not shared yet."""

    cleared: Paths = STATUS
    """Fields that a create resets."""
    resets: Mapping[str, Paths] = field(default_factory=lambda: {MAIN: STATUS, "status": SPEC})
    """By subresource, the paths that an update does not change."""
    only: Mapping[str, Paths] = field(default_factory=dict)
    """By subresource that writes only a part: the paths that an update changes, with `EACH_ITEM` for list elements."""
    generation: Paths = ()
    """The paths whose changes increment the generation, except through /status."""
    empty_counts: bool = False
    """Whether sending an empty list or map is a change, although none is stored: upstream does not equate it with nil."""
    counts_dropped: bool = False
    """Whether sending a field that the server then drops, such as one of a gate that is off, is a change as well."""
    emptiable: tuple[tuple[str, ...], ...] = ()
    """The paths of collections whose rules do not equate an empty one with an absent one, although none is stored."""
    exact_times: tuple[tuple[str, ...], ...] = ()
    """The paths of times whose rules for updates regard the fraction of a second, although none is stored."""
    first_generation: int = 0
    """The generation of a new object; 0: it has none."""
    create_on_update: bool = False
    created_by_apply: frozenset[str] = frozenset()
    """The subresources whose apply creates an object that does not exist."""
    unconditional_update: bool = True
    """Whether an update may omit the resourceVersion."""
    raw: tuple[str, ...] = ()
    """Immutable fields that are stored as the bytes that a client sent."""
    disabled: DisabledFields = NONE_DISABLED
    """Fields that are dropped before preparation from a new object, and from an updated one that did not use them."""
    prepare_create: Callable[[Tree, StrategyContext], None] = _keep_new
    prepare_update: Mapping[str, PrepareUpdate] = field(default_factory=dict)
    """By subresource, the function that prepares an update, after `resets` and `only`."""
    canonicalize: Callable[[Tree], None] = _keep
    """Normalizes a valid object before it is stored."""
    has_default_status: bool = False
    """Whether a new object gets a default status after validation."""
    grace: Callable[[Tree, int | None], int | None] = _not_gracefully
    """Returns the grace period of a deletion, for the requested one; None to delete the object at once."""
    pending: Callable[[Tree], bool] = _waits_for_finalizers
    """Returns whether a deleted object stays until something is done, such as removing finalizers."""
    prepare_delete: Callable[[Tree], None] = _keep
    """Changes an object that is marked as being deleted."""
    generates_suffixes: bool = True
    """Whether a generated name ends with random characters; otherwise it is generateName itself."""
    marks_first: bool = False
    """Whether the first deletion only marks the object, even if nothing is pending; another one deletes it."""
    has_plain_deletion: bool = False
    """Whether the first deletion sets deletionTimestamp only, without a grace period and a new generation."""
    marks_without_policy: bool = False
    """Whether the first deletion ignores the propagation policy."""
    dependents: str = BACKGROUND
    cascading: str = BACKGROUND
    """The propagation policy of `orphanDependents: false`."""
    dependents_warning: str = ""
    """The warning of a deletion without a propagation policy."""
    undeletable: Mapping[str, str] = field(default_factory=dict)
    """By name, why objects cannot be deleted other than by deletecollection."""
    checks_preconditions: bool = False
    """Whether the resource checks the preconditions of a deletion itself, with its own messages."""
    returns_deleted: bool = False
    """Whether a deletion returns the last state of the object instead of a Status."""

    @property
    def is_graceful(self) -> bool:
        """Whether a deletion can have a grace period."""
        return self.grace is not _not_gracefully


DEFAULT = Strategy()

COUNTED = Strategy(generation=SPEC, first_generation=1)
COUNTED_CONDITIONAL = Strategy(generation=SPEC, first_generation=1, unconditional_update=False)
UPSERTED = Strategy(create_on_update=True)
RETURNS_DELETED = Strategy(returns_deleted=True)
"""Strategies that many resources share."""


def null_when_empty(*paths: tuple[str, ...]) -> Callable[[Tree], None]:
    """Return a function that replaces empty lists at these paths by null, as Go encodes lists from protobuf."""

    def canonicalize(tree: Tree) -> None:
        for first, *rest in paths:
            if first in tree:
                tree[first] = _without_empty(tree[first], rest)

    return canonicalize


def _without_empty(value: Any, path: list[str]) -> Any:
    """Return a value with null for the empty lists at the end of the path. The value itself may be shared and stays."""
    if not path:
        return value or None
    if not value:
        return value
    step, *rest = path
    if step == EACH_ITEM:
        return [_without_empty(item, rest) for item in value]
    if step not in value:
        return value
    return value | {step: _without_empty(value[step], rest)}


# --- fields at paths


def preserve_fields(new: Tree, old: Mapping[str, Any], paths: Sequence[Path]) -> Tree:
    """Return the new object with the values of some paths from the old one. Neither tree is changed."""
    for path in paths:
        value = meta.value_at(old, path)
        if value is not None or path[0] in new:
            new = _with_value(new, path, value)
    return new


def apply_fields(new: Tree, old: Tree, paths: Sequence[Path]) -> Tree:
    """Return the old object with the values of some paths from the new one. Neither tree is changed.

    managedFields are the new object's: they record the write itself.
    """
    tree = preserve_fields(old, new, (("metadata", "managedFields"),))
    for path in paths:
        tree = _with_each(tree, new, path)
    return tree


def is_changed(new: Tree, old: Tree, paths: Sequence[Path]) -> bool:
    """Return whether the value of a path differs."""
    return any(meta.value_at(new, path) != meta.value_at(old, path) for path in paths)


def _with_value(tree: Tree, path: Path, value: Any) -> Tree:
    """Return the tree with a value at a path, or without it for None; only the structs on the way are copied."""
    step, *rest = path
    if rest:
        inner = tree.get(step)
        if not isinstance(inner, dict):
            inner = {}
        value = _with_value(inner, tuple(rest), value) or None
    if value is None:
        return {name: child for name, child in tree.items() if name != step}
    return tree | {step: value}


def _with_each(base: Any, source: Any, path: Path) -> Any:
    """Return the base with the source's value at a path. A list with other elements is replaced as a whole."""
    if EACH_ITEM not in path:
        return _with_value(base, path, meta.value_at(source, path))
    list_depth = path.index(EACH_ITEM)
    base_elements, source_elements = (
        meta.value_at(base, path[:list_depth]) or [],
        meta.value_at(source, path[:list_depth]) or [],
    )
    if [element.get("name") for element in base_elements] != [other.get("name") for other in source_elements]:
        return _with_value(base, path[:list_depth], source_elements or None)
    rest = path[list_depth + 1 :]
    elements = [
        _with_each(element, other, rest)
        for element, other in zip(base_elements, source_elements, strict=True)
    ]
    return _with_value(base, path[:list_depth], elements or None)
