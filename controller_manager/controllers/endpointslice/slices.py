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


@dataclass(slots=True)
class Changes:
    create: list[dict[str, Any]] = field(default_factory=list)
    update: list[dict[str, Any]] = field(default_factory=list)
    delete: list[Tree] = field(default_factory=list)

    def __add__(self, other: "Changes") -> "Changes":
        return Changes(self.create + other.create, self.update + other.update, self.delete + other.delete)


def arrange(
    service: Tree,
    present: Sequence[Tree],
    wanted: Mapping[Ports, Endpoints],
    labels: Mapping[str, str],
    new_slice: NewSlice,
    most: int,
) -> Changes:
    """For one address type."""
    own = [one for one in present if _is_of(one, service)]
    changes = Changes(delete=[one for one in present if not _is_of(one, service)])
    by_ports: defaultdict[Ports, list[Tree]] = defaultdict(list)
    for one in own:
        by_ports[ports_of(one)].append(one)
    for ports, endpoints in wanted.items():
        changes = changes + _arrange_group(by_ports.pop(ports, []), endpoints, ports, labels, new_slice, most)
    unwanted = [one for slices in by_ports.values() for one in slices]
    changes.delete += unwanted
    if len(changes.delete) == len(present) and not changes.create:
        _keep_placeholder(changes, unwanted, labels, new_slice)
    return _reused(changes, service)


def _arrange_group(
    present: Sequence[Tree],
    wanted: Endpoints,
    ports: Ports,
    labels: Mapping[str, str],
    new_slice: NewSlice,
    most: int,
) -> Changes:
    """Of slices that share their ports."""
    missing = dict(wanted)
    changes = Changes()
    same: list[Tree] = []
    for one in present:
        kept = [missing.pop(uid) for uid in map(_uid, one["endpoints"] or ()) if uid in missing]
        if kept == (one["endpoints"] or []) and meta.labels(one) == labels:
            same.append(one)
        elif kept:
            changes.update.append(_with(one, labels, kept))
        else:
            changes.delete.append(one)
    left = list(missing.values())
    for one in sorted(changes.update, key=lambda changed: -len(changed["endpoints"])):
        room = most - len(one["endpoints"])
        one["endpoints"] += left[:room]
        left = left[room:]
    if left and len(left) < most:
        left = _fill_one(same, left, labels, changes, most)
    changes.create += [new_slice(ports, left[at : at + most]) for at in range(0, len(left), most)]
    return changes


def _fill_one(
    same: Sequence[Tree], left: list[Any], labels: Mapping[str, str], changes: Changes, most: int
) -> list[Any]:
    """Put what is left into the fullest slice that can take all of it; what is left then."""
    able = [one for one in same if len(one["endpoints"] or ()) + len(left) <= most]
    if not able:
        return left
    fullest = max(able, key=lambda one: len(one["endpoints"] or ()))
    changes.update.append(_with(fullest, labels, [*(fullest["endpoints"] or ()), *left]))
    return []


def _keep_placeholder(
    changes: Changes, unwanted: Sequence[Tree], labels: Mapping[str, str], new_slice: NewSlice
) -> None:
    """A service without endpoints has one empty slice."""
    placeholder = next(
        (
            one
            for one in unwanted
            if not ports_of(one) and not one["endpoints"] and meta.labels(one) == labels
        ),
        None,
    )
    if placeholder is None:
        changes.create.append(new_slice((), ()))
    else:
        changes.delete.remove(placeholder)


def _reused(changes: Changes, service: Tree) -> Changes:
    """Rather than delete a slice and create another, change the one into the other."""
    for one in [doomed for doomed in changes.delete if _is_of(doomed, service)]:
        if not changes.create:
            break
        fresh = changes.create.pop()
        changes.delete.remove(one)
        filled = {**one, "endpoints": fresh["endpoints"], "ports": fresh["ports"]}
        changes.update.append(meta.with_metadata(filled, labels=fresh["metadata"]["labels"]))
    return changes


def _with(one: Tree, labels: Mapping[str, str], endpoints: list[Any]) -> dict[str, Any]:
    return {**meta.with_metadata(one, labels=labels), "endpoints": endpoints}


def _uid(endpoint: Tree) -> str:
    return str((endpoint.get("targetRef") or {}).get("uid", ""))


def _is_of(one: Tree, service: Tree) -> bool:
    return any(owner.get("uid") == meta.uid(service) for owner in meta.owner_references(one))
