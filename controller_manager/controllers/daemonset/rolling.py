"""A rolling update: which old pods go, and which nodes get a new one beside the old. Pure."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.control.actions import Action
from mockube.controller_manager.controllers.daemonset.pods import actions_of
from mockube.controller_manager.controllers.daemonset.state import DaemonState


class OnNode(NamedTuple):
    """The pods of a node that are not being deleted; both None where there is none."""

    name: str
    new: PodView | None
    old: PodView | None
    is_clear: bool
    """There is at most one of each."""


def rolling_update(state: DaemonState) -> tuple[Action, ...]:
    """Empty without a rolling update strategy. Called once the nodes have the pods that they should have, new or old."""
    if (state.spec.get("updateStrategy") or {}).get("type") != "RollingUpdate":
        return ()
    desired = state.desired_count
    surge, unavailable = state.max_surge(desired), state.unavailable(desired)
    if surge:
        return _with_surge(state, surge, desired)
    return _without_surge(state, max(unavailable, 1) if desired else unavailable)


def _on_nodes(state: DaemonState) -> Iterator[OnNode]:
    """All nodes that have a pod or should have one."""
    node_names = [name for name, fit in state.fits.items() if fit.should_run]
    for name in dict.fromkeys((*state.pods, *node_names)):
        active = [pod for pod in state.pods.get(name, ()) if not pod.deleting]
        new = [pod for pod in active if state.is_updated(pod)]
        old = [pod for pod in active if not state.is_updated(pod)]
        if len(new) > 1 or len(old) > 1:
            yield OnNode(name, None, None, is_clear=False)
        else:
            yield OnNode(name, next(iter(new), None), next(iter(old), None), is_clear=True)


def _without_surge(state: DaemonState, limit: int) -> tuple[Action, ...]:
    """Old pods that are not available are replaced in any case, others as long as not too many are missing."""
    missing, replaced, candidates = 0, list[PodView](), list[PodView]()
    for node in _on_nodes(state):
        if not node.is_clear or (node.old is None) == (node.new is None):
            missing += 1
        elif node.new is not None:
            missing += not state.is_available(node.new)
        elif node.old is not None and not state.is_available(node.old):
            replaced.append(node.old)
            missing += 1
        elif node.old is not None and missing < limit:
            candidates.append(node.old)
    return actions_of(state, (), [*replaced, *candidates[: max(0, limit - missing)]])


class _Surge(Struct):
    """The result of a surge, collected node by node."""

    count: int = 0
    """New pods beside old ones that are not available yet."""
    available: int = 0
    delete: list[PodView] = field(default_factory=list)
    leaving: list[PodView] = field(default_factory=list)
    """Available old pods on nodes that should have none."""
    allowed: list[str] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)


def _with_surge(state: DaemonState, limit: int, desired: int) -> tuple[Action, ...]:
    """New pods are created first: an old pod is deleted when its node has a new pod that is available."""
    surge = _Surge()
    for node in _on_nodes(state):
        _look(state, node, surge, limit)
    spare = max(0, surge.available - desired)
    nodes: Sequence[str] = [*surge.allowed, *surge.candidates[: max(0, limit - surge.count)]]
    return actions_of(state, nodes, [*surge.delete, *surge.leaving[:spare]])


def _look(state: DaemonState, node: OnNode, surge: _Surge, limit: int) -> None:
    if not node.is_clear:
        surge.count += 1
        return
    present = node.old or node.new
    surge.available += present is not None and state.is_available(present)
    if node.old is None:
        return
    if node.new is not None:
        if state.is_available(node.new):
            surge.delete.append(node.old)
        else:
            surge.count += 1
        return
    fit = state.fits.get(node.name)
    should_run = fit is not None and fit.should_run
    if state.is_available(node.old):
        if not should_run:
            surge.leaving.append(node.old)
        elif surge.count < limit:
            surge.candidates.append(node.name)
    elif should_run:
        surge.allowed.append(node.name)
    else:
        surge.delete.append(node.old)
