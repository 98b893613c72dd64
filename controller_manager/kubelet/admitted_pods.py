"""The pods that kubelets have admitted to their nodes, with what they ask for together.

A node's sums are worked out when the first pod is to be admitted there, and kept up to date pod by pod from then on.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.cache.store import Change, Lister
from mockube.controller_manager.client.podview import PodView
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.kubelet.effects import Step
from mockube.controller_manager.kubelet.pod_lifecycle.admission import (
    NodeUsage,
    Rejection,
    is_admitted,
    reject,
    rejection_of,
    shortage_of,
)
from mockube.controller_manager.kubelet.pod_lifecycle.preemption import (
    Candidate,
    NothingToPreempt,
    is_critical,
    is_preemptable,
    longest_kill,
    pods_to_preempt,
)
from mockube.controller_manager.workloads.indexes import BY_NODE
from mockube.controller_manager.workloads.pod_requests import (
    Amounts,
    HostPort,
    amounts,
    host_ports,
    pod_requests,
)

LOG = logging.getLogger(__name__)
_BETWEEN_REJECTIONS: Final = timedelta(milliseconds=40)
"""A kubelet sends 50 requests a second, and a status takes two: pods that are made again and again come no faster."""


class _Pod(Struct, frozen=True):
    requested: Amounts
    ports: tuple[HostPort, ...]
    generation: int
    """Of the pod when it was admitted: a later one is resized."""


class _Preemptor(Struct, frozen=True):
    """A critical pod that waits for others to end."""

    key: Key
    victims: frozenset[str]
    until: datetime
    """It waits no longer."""


class _Node(Struct):
    node: ReadOnlyTree = field(default_factory=dict)
    allocatable: Amounts = field(default_factory=Counter)
    pods: dict[str, _Pod] = field(default_factory=dict)
    requested: Amounts = field(default_factory=Counter)
    with_ports: dict[str, tuple[HostPort, ...]] = field(default_factory=dict)
    rejects_from: datetime | None = None
    victims: dict[str, datetime] = field(default_factory=dict)
    """Since when pods end that make room for critical ones; what they ask for counts no longer."""
    preemptors: dict[str, _Preemptor] = field(default_factory=dict)

    def set_node(self, node: ReadOnlyTree) -> None:
        if node is not self.node:
            status = node.get("status") or {}
            self.node, self.allocatable = node, amounts(status.get("allocatable") or status.get("capacity"))

    def add(self, uid: str, pod: _Pod) -> None:
        self.remove(uid)
        self.pods[uid] = pod
        self.requested.update(pod.requested)
        if pod.ports:
            self.with_ports[uid] = pod.ports

    def remove(self, uid: str) -> None:
        pod = self.pods.pop(uid, None)
        if pod is not None:
            self.requested.subtract(pod.requested)
            self.with_ports.pop(uid, None)

    def usage(self) -> NodeUsage:
        return NodeUsage(self.allocatable, self.requested, len(self.pods), self._taken())

    def _taken(self) -> Iterator[HostPort]:
        return (port for ports in self.with_ports.values() for port in ports)


class AdmittedPods:
    def __init__(
        self,
        pods: Lister[PodView],
        *,
        preempt: Callable[[PodView], None] = lambda _: None,
        look: Callable[[Key], None] = lambda _: None,
    ) -> None:
        """`preempt` is called for a pod that is to end; `look` for a pod that can be looked at again."""
        self._pods = pods
        self._preempt = preempt
        self._look = look
        self._nodes: dict[str, _Node] = {}

    def admit(self, pod: PodView, node: ReadOnlyTree, now: datetime) -> Step | None:
        """What a kubelet does about a pod that it rejects, or when; None for one that it takes or took before."""
        if pod.deleting or pod.is_terminal or is_admitted(pod.object):
            return None
        held = self._at(pod.node)
        if pod.uid in held.pods:
            return _wait_for_victims(held, pod, now) if held.preemptors else None
        held.set_node(node)
        new = _admitted(pod.object)
        rejection = rejection_of(pod.object, node, new.requested, new.ports, held.usage())
        if rejection is None and is_critical(pod.object):
            rejection = self._make_room(held, pod, new, now)
        if rejection is None:
            held.add(pod.uid, new)
            return _wait_for_victims(held, pod, now) if held.preemptors else None
        if held.rejects_from is not None and now < held.rejects_from:
            return Step(again_at=held.rejects_from)
        held.rejects_from = now + _BETWEEN_REJECTIONS
        return reject(pod.object, rejection, now)

    def _make_room(self, held: _Node, pod: PodView, new: _Pod, now: datetime) -> Rejection | None:
        """Have others end that are in the way of a critical pod; a rejection where that would not do."""
        shortage = shortage_of(new.requested, held.usage())
        if not shortage:
            return None
        others = {
            one.uid: one
            for one in self._pods.by_index(BY_NODE, pod.node)
            if one.uid in held.pods and is_preemptable(pod.object, one.object)
        }
        candidates = [
            Candidate(uid, (one.object.get("status") or {}).get("qosClass") or "", held.pods[uid].requested)
            for uid, one in others.items()
        ]
        try:
            chosen = [others[one.uid] for one in pods_to_preempt(candidates, shortage)]
        except NothingToPreempt as error:
            why = f"preemption: error finding a set of pods to preempt: {error}"
            message = f"Unexpected error while attempting to recover from admission failure: {why}"
            return Rejection("UnexpectedAdmissionError", message)
        for one in chosen:
            held.remove(one.uid)
            held.victims[one.uid] = now
            self._preempt(one)
        longest = sum(longest_kill(one.object) for one in chosen)
        until = now + timedelta(seconds=longest)
        held.preemptors[pod.uid] = _Preemptor(pod.key, frozenset(one.uid for one in chosen), until)
        return None

    def preempted_since(self, pod: PodView) -> datetime | None:
        """Since when a pod is to end so that a critical one has room; None if it may stay."""
        held = self._nodes.get(pod.node)
        return held.victims.get(pod.uid) if held is not None and held.victims else None

    def see(self, change: Change) -> None:
        """A pod of a node whose sums are known came, ended, was resized or is gone."""
        old: PodView | None = change.old
        new: PodView | None = change.new
        if old is not None and (new is None or new.uid != old.uid) and old.node in self._nodes:
            self._remove(self._nodes[old.node], old.uid)
        if new is None or new.node not in self._nodes:
            return
        held = self._nodes[new.node]
        if new.is_terminal:
            self._remove(held, new.uid)
        elif new.uid in held.victims:
            return
        elif (known := held.pods.get(new.uid)) is not None:
            if known.generation != meta.generation(new.object):
                held.add(new.uid, _admitted(new.object, known.generation))
        elif is_admitted(new.object):
            held.add(new.uid, _admitted(new.object))

    def _remove(self, held: _Node, uid: str) -> None:
        held.remove(uid)
        held.preemptors.pop(uid, None)
        if held.victims.pop(uid, None) is not None:
            for preemptor in held.preemptors.values():
                self._look(preemptor.key)

    def forget_node(self, name: str) -> None:
        self._nodes.pop(name, None)

    def _at(self, name: str) -> _Node:
        if name not in self._nodes:
            held = self._nodes[name] = _Node()
            for pod in self._pods.by_index(BY_NODE, name):
                if not pod.is_terminal and is_admitted(pod.object):
                    held.add(pod.uid, _admitted(pod.object))
        return self._nodes[name]


def _wait_for_victims(held: _Node, pod: PodView, now: datetime) -> Step | None:
    preemptor = held.preemptors.get(pod.uid)
    if preemptor is None:
        return None
    if now < preemptor.until and not preemptor.victims.isdisjoint(held.victims):
        return Step(again_at=preemptor.until)
    del held.preemptors[pod.uid]
    return None


def _admitted(pod: ReadOnlyTree, generation: int | None = None) -> _Pod:
    of = meta.generation(pod) if generation is None else generation
    try:
        spec = _allocated(pod)
        return _Pod(pod_requests(spec), tuple(host_ports(spec)), of)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        LOG.debug("the requests of pod %s cannot be read: %s", Key.of(pod), error)
        return _Pod(Counter(), (), of)


def _allocated(pod: ReadOnlyTree) -> ReadOnlyTree:
    """The spec with what the containers were given, which a resize that is not done yet does not change."""
    status = pod.get("status") or {}
    given = {
        held["name"]: held["allocatedResources"]
        for name in ("containerStatuses", "initContainerStatuses")
        for held in status.get(name) or ()
        if held.get("allocatedResources")
    }
    spec: ReadOnlyTree = pod["spec"]
    if not given:
        return spec

    def allocated(container: ReadOnlyTree) -> ReadOnlyTree:
        resources = {**(container.get("resources") or {}), "requests": given[container["name"]]}
        return {**container, "resources": resources}

    return {
        **spec,
        **{
            name: [allocated(one) if one["name"] in given else one for one in spec.get(name) or ()]
            for name in ("containers", "initContainers")
        },
    }
