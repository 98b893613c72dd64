"""Turn the slices that are there into those that should be, with few writes.

Pure. Endpoints stay in the slice where they are; new ones fill slices that change anyway, then the fullest slice that
has room for all that is left, then new slices. Upstream: k8s.io/endpointslice, reconciler.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apimachinery import meta
from controller_manager.controllers.endpointslice.desired import Endpoints, Ports, ports_of
from controller_manager.runtime.resource import Tree

NewSlice = Callable[[Ports, Iterable[Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How slices look."""

    labels: Mapping[str, str]
    new_slice: NewSlice
    most: int
    """How many endpoints one may have."""
    placeholder: bool = True
    """An owner that has no endpoints has an empty slice."""


@dataclass(slots=True)
class Changes:
    create: list[dict[str, Any]] = field(default_factory=list)
    update: list[dict[str, Any]] = field(default_factory=list)
    delete: list[Tree] = field(default_factory=list)

    def __add__(self, other: "Changes") -> "Changes":
        return Changes(self.create + other.create, self.update + other.update, self.delete + other.delete)


def arrange(owner: Tree, present: Sequence[Tree], wanted: Mapping[Ports, Endpoints], shape: Shape) -> Changes:
    """For one address type."""
    own = [one for one in present if _is_of(one, owner)]
    changes = Changes(delete=[one for one in present if not _is_of(one, owner)])
    by_ports: defaultdict[Ports, list[Tree]] = defaultdict(list)
    for one in own:
        by_ports[ports_of(one)].append(one)
    for ports, endpoints in wanted.items():
        changes = changes + _arrange_group(by_ports.pop(ports, []), endpoints, ports, shape)
    unwanted = [one for slices in by_ports.values() for one in slices]
    changes.delete += unwanted
    if shape.placeholder and len(changes.delete) == len(present) and not changes.create:
        _keep_placeholder(changes, unwanted, shape)
    return _reused(changes, owner)


def _arrange_group(present: Sequence[Tree], wanted: Endpoints, ports: Ports, shape: Shape) -> Changes:
    """Of slices that share their ports."""
    missing = dict(wanted)
    changes = Changes()
    same: list[Tree] = []
    for one in present:
        kept = [missing.pop(uid) for uid in map(_identity, one["endpoints"] or ()) if uid in missing]
        if kept == (one["endpoints"] or []) and meta.labels(one) == shape.labels:
            same.append(one)
        elif kept:
            changes.update.append(_with(one, shape.labels, kept))
        else:
            changes.delete.append(one)
    left = list(missing.values())
    for one in sorted(changes.update, key=lambda changed: -len(changed["endpoints"])):
        room = shape.most - len(one["endpoints"])
        one["endpoints"] += left[:room]
        left = left[room:]
    if left and len(left) < shape.most:
        left = _fill_one(same, left, shape, changes)
    changes.create += [
        shape.new_slice(ports, left[at : at + shape.most]) for at in range(0, len(left), shape.most)
    ]
    return changes


def _fill_one(same: Sequence[Tree], left: list[Any], shape: Shape, changes: Changes) -> list[Any]:
    """Put what is left into the fullest slice that can take all of it; what is left then."""
    able = [one for one in same if len(one["endpoints"] or ()) + len(left) <= shape.most]
    if not able:
        return left
    fullest = max(able, key=lambda one: len(one["endpoints"] or ()))
    changes.update.append(_with(fullest, shape.labels, [*(fullest["endpoints"] or ()), *left]))
    return []


def _keep_placeholder(changes: Changes, unwanted: Sequence[Tree], shape: Shape) -> None:
    """A service without endpoints has one empty slice."""
    placeholder = next(
        (
            one
            for one in unwanted
            if not ports_of(one) and not one["endpoints"] and meta.labels(one) == shape.labels
        ),
        None,
    )
    if placeholder is None:
        changes.create.append(shape.new_slice((), ()))
    else:
        changes.delete.remove(placeholder)


def _reused(changes: Changes, owner: Tree) -> Changes:
    """Rather than delete a slice and create another, change the one into the other."""
    for one in [doomed for doomed in changes.delete if _is_of(doomed, owner)]:
        if not changes.create:
            break
        fresh = changes.create.pop()
        changes.delete.remove(one)
        filled = {**one, "endpoints": fresh["endpoints"], "ports": fresh["ports"]}
        changes.update.append(meta.with_metadata(filled, labels=fresh["metadata"]["labels"]))
    return changes


def _with(one: Tree, labels: Mapping[str, str], endpoints: list[Any]) -> dict[str, Any]:
    return {**meta.with_metadata(one, labels=labels), "endpoints": endpoints}


def _identity(endpoint: Tree) -> str:
    """Of the pod behind it; where there is none, its address."""
    return str((endpoint.get("targetRef") or {}).get("uid") or endpoint["addresses"][0])


def _is_of(one: Tree, owner: Tree) -> bool:
    return any(reference.get("uid") == meta.uid(owner) for reference in meta.owner_references(one))
