"""The pods that kubelets have admitted to their nodes, with the sums of their requests.

A node's sums are computed at the first admission on the node, and then updated with each change of a pod.
"""

import logging
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Change, Lister
from mockube.client.component_helpers.indexes import BY_NODE
from mockube.client.component_helpers.pod_requests import Amounts, HostPort, amounts, host_ports, pod_requests
from mockube.client.podview import PodView
from mockube.client.resources import Key

from .pod_lifecycle import admission, preemption
from .pod_lifecycle.admission import NodeAllocation, PodRejection
from .pod_lifecycle.preemption import NothingToPreempt, PreemptiblePod
from .pod_lifecycle.resize import allocated_spec, with_requests
from .step_effects import Step

LOG = logging.getLogger(__name__)
_REJECTION_INTERVAL: Final = timedelta(milliseconds=40)
"""The minimum time between two rejections on a node: a kubelet sends 50 requests a second, and a rejection takes two.

It limits the rate of pods that a controller recreates endlessly.
"""


class _AdmittedPod(Struct, frozen=True):
    requested: Amounts
    ports: tuple[HostPort, ...]
    generation: int
    """The pod's generation at admission; a later generation is a resize."""


class _Preemptor(Struct, frozen=True):
    """A critical pod that waits for the end of the pods that were preempted for it."""

    key: Key
    victims: frozenset[str]
    deadline: datetime
    """The time at which it starts even if a victim has not ended."""


class _NodePods(Struct):
    node: ReadOnlyTree = field(default_factory=dict)
    allocatable: Amounts = field(default_factory=Counter)
    pods: dict[str, _AdmittedPod] = field(default_factory=dict)
    requested: Amounts = field(default_factory=Counter)
    host_ports_by_uid: dict[str, tuple[HostPort, ...]] = field(default_factory=dict)
    next_rejection_at: datetime | None = None
    victims: dict[str, datetime] = field(default_factory=dict)
    """The times of the preemptions, by uid; the requests of preempted pods no longer count."""
    preemptors: dict[str, _Preemptor] = field(default_factory=dict)

    def set_node(self, node: ReadOnlyTree) -> None:
        if node is not self.node:
            status = node.get("status") or {}
            self.node, self.allocatable = node, amounts(status.get("allocatable") or status.get("capacity"))

    def add(self, uid: str, pod: _AdmittedPod) -> None:
        self.remove(uid)
        self.pods[uid] = pod
        self.requested.update(pod.requested)
        if pod.ports:
            self.host_ports_by_uid[uid] = pod.ports

    def remove(self, uid: str) -> None:
        pod = self.pods.pop(uid, None)
        if pod is not None:
            self.requested.subtract(pod.requested)
            self.host_ports_by_uid.pop(uid, None)

    def usage(self) -> NodeAllocation:
        return NodeAllocation(
            self.allocatable,
            self.requested,
            len(self.pods),
            (port for ports in self.host_ports_by_uid.values() for port in ports),
        )


class AdmittedPods:
    def __init__(
        self,
        pods: Lister[PodView],
        *,
        preempt: Callable[[PodView], None] = lambda _: None,
        enqueue: Callable[[Key], None] = lambda _: None,
    ) -> None:
        """`preempt` is called with a pod that is to end, and `enqueue` with the key of a pod to reconcile again."""
        self._pods = pods
        self._preempt = preempt
        self._enqueue = enqueue
        self._nodes: dict[str, _NodePods] = {}

    def admit(self, pod: PodView, node: ReadOnlyTree, now: datetime) -> Step | None:
        """Return the step of a pod that is rejected or has to wait; None if the pod is admitted."""
        if pod.deleting or pod.is_terminal or admission.is_admitted(pod.object):
            return None
        node_pods = self._pods_of(pod.node)
        if pod.uid in node_pods.pods:
            return _wait_for_victims(node_pods, pod, now) if node_pods.preemptors else None
        node_pods.set_node(node)
        new = _admitted_pod(pod.object)
        required = _without_devices(pod.object, new.requested)
        rejection = admission.admission_rejection(pod.object, node, required, new.ports, node_pods.usage())
        if rejection is None and preemption.is_critical(pod.object):
            rejection = self._preempt_for(node_pods, pod, required, now)
        if rejection is None:
            node_pods.add(pod.uid, new)
            return _wait_for_victims(node_pods, pod, now) if node_pods.preemptors else None
        if node_pods.next_rejection_at is not None and now < node_pods.next_rejection_at:
            return Step(requeue_at=node_pods.next_rejection_at)
        node_pods.next_rejection_at = now + _REJECTION_INTERVAL
        return admission.reject(pod.object, rejection, now)

    def _preempt_for(
        self, node_pods: _NodePods, pod: PodView, required: Amounts, now: datetime
    ) -> PodRejection | None:
        """Preempt pods so that a critical pod fits; return a rejection if that is not possible."""
        shortage = admission.resource_shortage(required, node_pods.usage())
        if not shortage:
            return None
        others = {
            other.uid: other
            for other in self._pods.by_index(BY_NODE, pod.node)
            if other.uid in node_pods.pods and preemption.is_preemptable(pod.object, other.object)
        }
        candidates = [
            PreemptiblePod(
                uid, (other.object.get("status") or {}).get("qosClass") or "", node_pods.pods[uid].requested
            )
            for uid, other in others.items()
        ]
        try:
            victims = [
                others[candidate.uid] for candidate in preemption.pods_to_preempt(candidates, shortage)
            ]
        except NothingToPreempt as error:
            problem = f"preemption: error finding a set of pods to preempt: {error}"
            message = f"Unexpected error while attempting to recover from admission failure: {problem}"
            return PodRejection("UnexpectedAdmissionError", message)
        for victim in victims:
            node_pods.remove(victim.uid)
            node_pods.victims[victim.uid] = now
            self._preempt(victim)
        seconds = sum(preemption.kill_timeout(victim.object) for victim in victims)
        deadline = now + timedelta(seconds=seconds)
        node_pods.preemptors[pod.uid] = _Preemptor(
            pod.key, frozenset(victim.uid for victim in victims), deadline
        )
        return None

    def preemption_time(self, pod: PodView) -> datetime | None:
        """Return the time at which a pod was preempted; None if it was not."""
        node_pods = self._nodes.get(pod.node)
        return node_pods.victims.get(pod.uid) if node_pods is not None and node_pods.victims else None

    def on_change(self, change: Change) -> None:
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
        elif admission.is_admitted(new.object):
            node_pods.add(new.uid, _admitted_pod(new.object))

    def _remove(self, node_pods: _NodePods, uid: str) -> None:
        node_pods.remove(uid)
        node_pods.preemptors.pop(uid, None)
        if node_pods.victims.pop(uid, None) is not None:
            for preemptor in node_pods.preemptors.values():
                self._enqueue(preemptor.key)

    def forget_node(self, name: str) -> None:
        self._nodes.pop(name, None)

    def _pods_of(self, name: str) -> _NodePods:
        if name not in self._nodes:
            node_pods = self._nodes[name] = _NodePods()
            for pod in self._pods.by_index(BY_NODE, name):
                if not pod.is_terminal and admission.is_admitted(pod.object):
                    node_pods.add(pod.uid, _admitted_pod(pod.object))
        return self._nodes[name]


def _wait_for_victims(node_pods: _NodePods, pod: PodView, now: datetime) -> Step | None:
    preemptor = node_pods.preemptors.get(pod.uid)
    if preemptor is None:
        return None
    if now < preemptor.deadline and not preemptor.victims.isdisjoint(node_pods.victims):
        return Step(requeue_at=preemptor.deadline)
    del node_pods.preemptors[pod.uid]
    return None


def _admitted_pod(pod: ReadOnlyTree, generation: int | None = None) -> _AdmittedPod:
    admitted_generation = meta.generation(pod) if generation is None else generation
    try:
        spec = allocated_spec(pod)
        requested = frozenset(pod_requests(spec).items())
        return _shared_pod(requested, tuple(host_ports(spec)), admitted_generation)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        LOG.debug("the requests of pod %s cannot be read: %s", Key.of(pod), error)
        return _shared_pod(frozenset(), (), admitted_generation)


@lru_cache(maxsize=1024)
def _shared_pod(
    requested: frozenset[tuple[str, int]], ports: tuple[HostPort, ...], generation: int
) -> _AdmittedPod:
    """Return one record for all pods that are alike."""
    return _AdmittedPod(Counter(dict(requested)), ports, generation)


def _without_devices(pod: ReadOnlyTree, requested: Amounts) -> Amounts:
    """Return a pod's requests without the extended resources for which its containers have devices of a claim."""
    claim = (pod.get("status") or {}).get("extendedResourceClaimStatus")
    if not claim:
        return requested
    mapped = {(mapping["containerName"], mapping["resourceName"]) for mapping in claim["requestMappings"]}

    def remaining(container: ReadOnlyTree) -> ReadOnlyTree:
        requests = (container.get("resources") or {}).get("requests") or {}
        return {name: amount for name, amount in requests.items() if (container["name"], name) not in mapped}

    spec = pod["spec"]
    containers = (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    return pod_requests(
        with_requests(spec, {container["name"]: remaining(container) for container in containers})
    )
