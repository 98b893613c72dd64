"""The pods that kubelets have admitted to their nodes, with the sums of their requests.

A node's sums are computed when the first pod is to be admitted there, and updated pod by pod from then on.
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
    admission_rejection,
    is_admitted,
    reject,
    shortage_of,
)
from mockube.controller_manager.kubelet.pod_lifecycle.preemption import (
    Candidate,
    NothingToPreempt,
    is_critical,
    is_preemptable,
    kill_timeout,
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
"""A kubelet sends 50 requests a second, and a status takes two: pods that are recreated endlessly cannot be faster."""


class _Pod(Struct, frozen=True):
    requested: Amounts
    ports: tuple[HostPort, ...]
    generation: int
    """The pod's generation at admission: a later one is a resize."""


class _Preemptor(Struct, frozen=True):
    """A critical pod that waits for others to end."""

    key: Key
    victims: frozenset[str]
    until: datetime
    """The end of its wait."""


class _NodePods(Struct):
    node: ReadOnlyTree = field(default_factory=dict)
    allocatable: Amounts = field(default_factory=Counter)
    pods: dict[str, _Pod] = field(default_factory=dict)
    requested: Amounts = field(default_factory=Counter)
    with_ports: dict[str, tuple[HostPort, ...]] = field(default_factory=dict)
    rejects_from: datetime | None = None
    victims: dict[str, datetime] = field(default_factory=dict)
    """Since when preempted pods end; their requests no longer count."""
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
        return NodeUsage(self.allocatable, self.requested, len(self.pods), self._host_ports())

    def _host_ports(self) -> Iterator[HostPort]:
        return (port for ports in self.with_ports.values() for port in ports)


class AdmittedPods:
    def __init__(
        self,
        pods: Lister[PodView],
        *,
        preempt: Callable[[PodView], None] = lambda _: None,
        look: Callable[[Key], None] = lambda _: None,
    ) -> None:
        """`preempt` is called for a pod to end; `look` for a pod to reconcile again."""
        self._pods = pods
        self._preempt = preempt
        self._look = look
        self._nodes: dict[str, _NodePods] = {}

    def admit(self, pod: PodView, node: ReadOnlyTree, now: datetime) -> Step | None:
        """Return the step that rejects a pod, now or later; None for a pod that is admitted."""
        if pod.deleting or pod.is_terminal or is_admitted(pod.object):
            return None
        node_pods = self._pods_of(pod.node)
        if pod.uid in node_pods.pods:
            return _wait_for_victims(node_pods, pod, now) if node_pods.preemptors else None
        node_pods.set_node(node)
        new = _admitted_pod(pod.object)
        rejection = admission_rejection(pod.object, node, new.requested, new.ports, node_pods.usage())
        if rejection is None and is_critical(pod.object):
            rejection = self._make_room(node_pods, pod, new, now)
        if rejection is None:
            node_pods.add(pod.uid, new)
            return _wait_for_victims(node_pods, pod, now) if node_pods.preemptors else None
        if node_pods.rejects_from is not None and now < node_pods.rejects_from:
            return Step(again_at=node_pods.rejects_from)
        node_pods.rejects_from = now + _BETWEEN_REJECTIONS
        return reject(pod.object, rejection, now)

    def _make_room(self, node_pods: _NodePods, pod: PodView, new: _Pod, now: datetime) -> Rejection | None:
        """Preempt other pods for a critical one; returns a rejection where that does not help."""
        shortage = shortage_of(new.requested, node_pods.usage())
        if not shortage:
            return None
        others = {
            other.uid: other
            for other in self._pods.by_index(BY_NODE, pod.node)
            if other.uid in node_pods.pods and is_preemptable(pod.object, other.object)
        }
        candidates = [
            Candidate(
                uid, (other.object.get("status") or {}).get("qosClass") or "", node_pods.pods[uid].requested
            )
            for uid, other in others.items()
        ]
        try:
            chosen = [others[candidate.uid] for candidate in pods_to_preempt(candidates, shortage)]
        except NothingToPreempt as error:
            problem = f"preemption: error finding a set of pods to preempt: {error}"
            message = f"Unexpected error while attempting to recover from admission failure: {problem}"
            return Rejection("UnexpectedAdmissionError", message)
        for victim in chosen:
            node_pods.remove(victim.uid)
            node_pods.victims[victim.uid] = now
            self._preempt(victim)
        seconds = sum(kill_timeout(victim.object) for victim in chosen)
        until = now + timedelta(seconds=seconds)
        node_pods.preemptors[pod.uid] = _Preemptor(pod.key, frozenset(victim.uid for victim in chosen), until)
        return None

    def preemption_time(self, pod: PodView) -> datetime | None:
        """When a pod was preempted; None if it was not."""
        node_pods = self._nodes.get(pod.node)
        return node_pods.victims.get(pod.uid) if node_pods is not None and node_pods.victims else None

    def see(self, change: Change) -> None:
        """Update a node's sums after a change of a pod."""
        old: PodView | None = change.old
        new: PodView | None = change.new
        if old is not None and (new is None or new.uid != old.uid) and old.node in self._nodes:
            self._remove(self._nodes[old.node], old.uid)
        if new is None or new.node not in self._nodes:
            return
        node_pods = self._nodes[new.node]
        if new.is_terminal:
            self._remove(node_pods, new.uid)
        elif new.uid in node_pods.victims:
            return
        elif (admitted_pod := node_pods.pods.get(new.uid)) is not None:
            if admitted_pod.generation != meta.generation(new.object):
                node_pods.add(new.uid, _admitted_pod(new.object, admitted_pod.generation))
        elif is_admitted(new.object):
            node_pods.add(new.uid, _admitted_pod(new.object))

    def _remove(self, node_pods: _NodePods, uid: str) -> None:
        node_pods.remove(uid)
        node_pods.preemptors.pop(uid, None)
        if node_pods.victims.pop(uid, None) is not None:
            for preemptor in node_pods.preemptors.values():
                self._look(preemptor.key)

    def forget_node(self, name: str) -> None:
        self._nodes.pop(name, None)

    def _pods_of(self, name: str) -> _NodePods:
        if name not in self._nodes:
            node_pods = self._nodes[name] = _NodePods()
            for pod in self._pods.by_index(BY_NODE, name):
                if not pod.is_terminal and is_admitted(pod.object):
                    node_pods.add(pod.uid, _admitted_pod(pod.object))
        return self._nodes[name]


def _wait_for_victims(node_pods: _NodePods, pod: PodView, now: datetime) -> Step | None:
    preemptor = node_pods.preemptors.get(pod.uid)
    if preemptor is None:
        return None
    if now < preemptor.until and not preemptor.victims.isdisjoint(node_pods.victims):
        return Step(again_at=preemptor.until)
    del node_pods.preemptors[pod.uid]
    return None


def _admitted_pod(pod: ReadOnlyTree, generation: int | None = None) -> _Pod:
    of = meta.generation(pod) if generation is None else generation
    try:
        spec = _with_allocated_resources(pod)
        return _Pod(pod_requests(spec), tuple(host_ports(spec)), of)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        LOG.debug("the requests of pod %s cannot be read: %s", Key.of(pod), error)
        return _Pod(Counter(), (), of)


def _with_allocated_resources(pod: ReadOnlyTree) -> ReadOnlyTree:
    """The spec with the allocated resources of its containers, which a pending resize does not change."""
    status = pod.get("status") or {}
    requests = {
        container_status["name"]: container_status["allocatedResources"]
        for name in ("containerStatuses", "initContainerStatuses")
        for container_status in status.get(name) or ()
        if container_status.get("allocatedResources")
    }
    spec: ReadOnlyTree = pod["spec"]
    if not requests:
        return spec

    def allocate(container: ReadOnlyTree) -> ReadOnlyTree:
        resources = {**(container.get("resources") or {}), "requests": requests[container["name"]]}
        return {**container, "resources": resources}

    return {
        **spec,
        **{
            name: [
                allocate(container) if container["name"] in requests else container
                for container in spec.get(name) or ()
            ]
            for name in ("containers", "initContainers")
        },
    }
