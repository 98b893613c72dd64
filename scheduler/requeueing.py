"""Which changes of the cluster may make an unschedulable pod schedulable, by the plugins that rejected it. Pure.

Upstream: the events and queueing hints of each plugin, framework/events.go.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Flag, auto
from functools import lru_cache
from typing import Any, Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.feature_gates import FeatureGates
from mockube.apimachinery.labels import Selector
from mockube.apimachinery.resource_names import IMPLICIT_DEVICES
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.component_helpers.effective_requests import effective_requests, size_fields
from mockube.client.component_helpers.node_selectors import required_node_affinity
from mockube.client.component_helpers.pod_requests import PODS, amounts, host_ports
from mockube.client.component_helpers.tolerations import find_untolerated_taint
from mockube.client.podview import PodView

from .affinity_terms import AffinityTerm, terms_of
from .podinfo import PodInfo
from .spreading import REQUIRED, own_constraints


class Action(Flag):
    """What has changed."""

    ADD = auto()
    DELETE = auto()
    LABELS = auto()
    TAINTS = auto()
    """A node's taints, or whether it is unschedulable."""
    ALLOCATABLE = auto()
    FEATURES = auto()
    """The features that a node declares."""
    REQUESTS = auto()
    """A pod's requests."""
    OTHER = auto()


class ClusterEvent(NamedTuple):
    """A change of an object that may make pods schedulable; kube-scheduler's ClusterEvent, with the objects."""

    kind: str
    """The kind of the object; a Pod is one that has a node."""
    action: Action
    old: Any = None
    """The object before the change: a PodView for pods, a tree for others."""
    new: Any = None
    by_devices: Collection[str] = ()
    """The extended resources that device classes provide on nodes that do not have them."""


ANYTHING: Final = ClusterEvent("", Action.OTHER)
"""An event that concerns every pod."""
_UPDATE: Final = ~(Action.ADD | Action.DELETE)

Hint = Callable[[PodInfo, ClusterEvent], bool]
"""Returns whether an event may help a pod; kube-scheduler's QueueingHintFn."""


def node_actions(old: ReadOnlyTree | None, new: ReadOnlyTree | None) -> Action:
    """Return what a change of a node changes for pods, as opposed to a heartbeat."""
    if old is None or new is None:
        return Action.ADD if old is None else Action.DELETE
    actions = Action(0)
    if meta.labels(old) != meta.labels(new):
        actions |= Action.LABELS
    if any(old["spec"].get(field) != new["spec"].get(field) for field in ("taints", "unschedulable")):
        actions |= Action.TAINTS
    old_status, new_status = old.get("status") or {}, new.get("status") or {}
    if old_status.get("allocatable") != new_status.get("allocatable"):
        actions |= Action.ALLOCATABLE
    if old_status.get("declaredFeatures") != new_status.get("declaredFeatures"):
        actions |= Action.FEATURES
    return actions


def event_of(kind: str, old: ReadOnlyTree | None, new: ReadOnlyTree | None) -> ClusterEvent:
    """Return the event of a change of an object that is neither a node nor a pod."""
    if old is None or new is None:
        return ClusterEvent(kind, Action.ADD if old is None else Action.DELETE, old, new)
    return ClusterEvent(kind, Action.OTHER, old, new)


def pod_actions(old: PodView | None, new: PodView | None) -> Action:
    """Return what a change of a pod that has a node changes for other pods."""
    if old is None or new is None:
        return Action.ADD if old is None else Action.DELETE
    actions = Action(0)
    if old.labels != new.labels:
        actions |= Action.LABELS
    if old.object["spec"] != new.object["spec"] or size_fields(old.object) != size_fields(new.object):
        actions |= Action.REQUESTS
    return actions


def is_worth_requeuing(
    view: PodView,
    plugins: Collection[str],
    event: ClusterEvent,
    gates: FeatureGates,
    without_hints: Collection[str] = (),
) -> bool:
    """Return whether an event may make a pod schedulable that these plugins rejected.

    Any event of a plugin that is `without_hints` may.
    """
    if event is ANYTHING or not plugins:
        return True
    hints = _hints(frozenset(plugins), event.kind, event.action)
    if not hints:
        return False
    if None in hints or any(
        _hints(frozenset({name}), event.kind, event.action) for name in without_hints if name in plugins
    ):
        return True
    pod = PodInfo.of(view, gates)
    return any(hint(pod, event) for hint in hints if hint is not None)


@lru_cache(maxsize=1024)
def _hints(plugins: frozenset[str], kind: str, action: Action) -> frozenset[Hint | None]:
    """Return the hints of plugins for events of a kind; None for a plugin that any of them may help."""
    return frozenset(
        hint
        for plugin in plugins
        for event_kind, actions, hint in _EVENTS.get(plugin, ((kind, action, None),))
        if event_kind == kind and actions & action
    )


# --- nodes


def _becomes(matches: Callable[[ReadOnlyTree], bool], event: ClusterEvent) -> bool:
    """Return whether a node matches now, and did not before."""
    return matches(event.new) and (event.old is None or not matches(event.old))


def _becomes_schedulable(_: PodInfo, event: ClusterEvent) -> bool:
    return _becomes(lambda node: not node["spec"].get("unschedulable"), event)


def _becomes_tolerated(pod: PodInfo, event: ClusterEvent) -> bool:
    def is_tolerated(node: ReadOnlyTree) -> bool:
        return find_untolerated_taint(pod.spec, _taints_of(node), ("NoSchedule", "NoExecute")) is None

    return _becomes(is_tolerated, event)


def _taints_of(node: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
    return node["spec"].get("taints") or ()


def _becomes_selected(pod: PodInfo, event: ClusterEvent) -> bool:
    matches = required_node_affinity(pod.spec)
    return matches is None or _becomes(matches, event)


def _has_room(pod: PodInfo, event: ClusterEvent) -> bool:
    """Return whether the pod fits an empty node, of which a resource that the pod requests has increased."""
    new = amounts((event.new.get("status") or {}).get("allocatable"))
    requested = {**pod.requested, PODS: 1}
    by_devices = {name for name in requested if name in event.by_devices and not new[name]}
    if any(amount > new[name] for name, amount in requested.items() if name not in by_devices):
        return False
    old = amounts(((event.old or {}).get("status") or {}).get("allocatable"))
    return event.old is None or bool(by_devices) or any(new[name] > old[name] for name in requested)


def _provides_resource(pod: PodInfo, event: ClusterEvent) -> bool:
    """Return whether a device class provides an extended resource of the pod now, and did not before."""
    old, new = (
        None if device_class is None else (device_class.get("spec") or {}).get("extendedResourceName")
        for device_class in (event.old, event.new)
    )
    if event.old is not None:
        return new != old and new in pod.requested
    return new in pod.requested or IMPLICIT_DEVICES + meta.name(event.new) in pod.requested


def _changes_domain(pod: PodInfo, event: ClusterEvent) -> bool:
    """Return whether a node joins or leaves a domain of the pod's spread constraints, or one of a domain changes its taints.

    A node belongs to a domain only if it has the labels of all constraints.
    """
    keys = sorted({constraint.topology_key for constraint in own_constraints(pod, REQUIRED)})

    def domains_of(node: ReadOnlyTree | None) -> list[str] | None:
        labels = {} if node is None else meta.labels(node)
        is_counted = node is not None and all(key in labels for key in keys)
        return [labels[key] for key in keys] if is_counted else None

    old, new = domains_of(event.old), domains_of(event.new)
    if old != new:
        return True
    return new is not None and _taints_of(event.old) != _taints_of(event.new)


def _changes_topology(pod: PodInfo, event: ClusterEvent) -> bool:
    """Return whether a node joins a domain of the pod's affinity, or leaves one of its anti-affinity."""
    affinity, anti_affinity = (
        {term.topology_key for term in terms} for terms in (pod.terms.affinity, pod.terms.anti_affinity)
    )
    new = meta.labels(event.new)
    if event.old is None:
        # A node without the label of an anti-affinity fits as well.
        return bool(anti_affinity) or any(key in new for key in affinity)
    old = meta.labels(event.old)
    return any(key in new and old.get(key) != new[key] for key in affinity) or any(
        key in old and old[key] != new.get(key) for key in anti_affinity
    )


# --- pods on nodes


def _frees_ports(pod: PodInfo, event: ClusterEvent) -> bool:
    used_ports = host_ports(event.old.object["spec"])
    return any(host_port.conflicts(used_port) for host_port in pod.host_ports for used_port in used_ports)


def _frees_requests(pod: PodInfo, event: ClusterEvent) -> bool:
    old, new = (effective_requests(view.object, pod.gates).requested for view in (event.old, event.new))
    return any(new[name] < old[name] for name in pod.requested)


def _frees_volume(pod: PodInfo, event: ClusterEvent) -> bool:
    return bool(pod.spec.get("volumes")) and bool(event.old.object["spec"].get("volumes"))


def _changes_count(pod: PodInfo, event: ClusterEvent) -> bool:
    """Return whether the number of pods that a spread constraint of the pod counts changes."""
    old, new = event.old, event.new
    if (new or old).key.namespace != pod.view.key.namespace:
        return False

    def is_counted(view: PodView | None, selector: Selector) -> bool:
        return view is not None and selector.matches(view.labels)

    return any(
        is_counted(old, constraint.selector) != is_counted(new, constraint.selector)
        for constraint in own_constraints(pod, REQUIRED)
    )


def _changes_affinity(pod: PodInfo, event: ClusterEvent) -> bool:
    """Return whether there is one more pod that the affinity matches, or one less that excludes the pod."""
    old, new = event.old, event.new

    def is_wanted(view: PodView | None) -> bool:
        return (
            view is not None
            and bool(pod.terms.affinity)
            and all(_matches(term, view) for term in pod.terms.affinity)
        )

    def is_avoided(view: PodView | None) -> bool:
        return view is not None and any(_matches(term, view) for term in pod.terms.anti_affinity)

    if (is_wanted(new) and not is_wanted(old)) or (is_avoided(old) and not is_avoided(new)):
        return True
    return new is None and any(_matches(term, pod.view) for term in terms_of(old).anti_affinity)


def _matches(term: AffinityTerm, view: PodView) -> bool:
    """Return whether a term may match a pod: the labels of its namespace are not considered."""
    may_be_in_namespaces = view.key.namespace in term.namespaces or term.namespace_selector is not None
    return may_be_in_namespaces and term.selector.matches(view.labels)


# --- claims


def _is_claim_of(pod: PodInfo, event: ClusterEvent) -> bool:
    """Return whether the pod uses a claim, or owns it."""
    if meta.namespace(event.new) != pod.view.key.namespace:
        return False
    return meta.name(event.new) in pod.claims or meta.is_controlled_by(event.new, pod.view.object)


_Row = tuple[str, Action, Hint | None]
_CHANGED: Final = Action.ADD | _UPDATE
_CLAIMS: Final[tuple[_Row, ...]] = (
    ("PersistentVolumeClaim", _CHANGED, _is_claim_of),
    ("PersistentVolume", _CHANGED, None),
    ("StorageClass", _CHANGED, None),
)
_EVENTS: Final[Mapping[str, tuple[_Row, ...]]] = {
    "NodeUnschedulable": (("Node", Action.ADD | Action.TAINTS, _becomes_schedulable),),
    "TaintToleration": (("Node", Action.ADD | Action.TAINTS, _becomes_tolerated),),
    "NodeAffinity": (("Node", Action.ADD | Action.LABELS, _becomes_selected),),
    "NodePorts": (("Node", Action.ADD, None), ("Pod", Action.DELETE, _frees_ports)),
    "NodeResourcesFit": (
        ("Node", Action.ADD | Action.ALLOCATABLE, _has_room),
        ("Pod", Action.DELETE, None),
        ("Pod", Action.REQUESTS, _frees_requests),
        ("DeviceClass", _CHANGED, _provides_resource),
    ),
    "VolumeRestrictions": (
        ("Node", Action.ADD, None),
        ("Pod", Action.DELETE, _frees_volume),
        ("PersistentVolumeClaim", Action.ADD, _is_claim_of),
    ),
    "NodeVolumeLimits": (
        ("CSINode", _CHANGED, None),
        ("CSIDriver", _CHANGED, None),
        ("Pod", Action.DELETE, _frees_volume),
        ("PersistentVolumeClaim", Action.ADD, _is_claim_of),
        ("VolumeAttachment", Action.DELETE, None),
    ),
    "VolumeBinding": (
        *_CLAIMS,
        ("Node", Action.ADD | Action.LABELS, None),
        ("CSINode", _CHANGED, None),
        ("CSIDriver", _UPDATE, None),
        ("CSIStorageCapacity", _CHANGED, None),
    ),
    "VolumeZone": (*_CLAIMS, ("Node", Action.ADD | Action.LABELS, None)),
    "PodTopologySpread": (
        ("Node", Action.ADD | Action.DELETE | Action.LABELS | Action.TAINTS, _changes_domain),
        ("Pod", Action.ADD | Action.DELETE | Action.LABELS, _changes_count),
    ),
    "InterPodAffinity": (
        ("Node", Action.ADD | Action.LABELS, _changes_topology),
        ("Pod", Action.ADD | Action.DELETE | Action.LABELS, _changes_affinity),
    ),
    "DynamicResources": (
        ("Node", Action.ADD | Action.LABELS | Action.ALLOCATABLE, None),
        ("ResourceClaim", ~Action(0), None),
        ("DeviceClass", _CHANGED, None),
        ("ResourceSlice", _CHANGED, None),
    ),
    "NodeDeclaredFeatures": (("Node", Action.ADD | Action.FEATURES, None),),
}
"""The events for which a pod is tried again that a plugin rejected: kind, actions, and the hint that compares the objects."""
