"""The nodes on which a DaemonSet's pods may run, and the body of a node's pod."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.gotext import int_or_none
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_CONTROLLER_REVISION_HASH
from mockube.client.component_helpers.node_selectors import required_node_affinity
from mockube.client.component_helpers.tolerations import find_untolerated_taint
from mockube.client.podview import PodView
from mockube.controller_manager.workloads.templates import pod_of

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
LABEL_TEMPLATE_GENERATION: Final = "pod-template-generation"
_NODE_NAME: Final = "metadata.name"

_TOLERATED: Final[tuple[tuple[str, str], ...]] = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_TOLERATED_IN_HOST_NETWORK: Final = (("network-unavailable", "NoSchedule"),)


class Fit(NamedTuple):
    """Whether a DaemonSet's pods may run on a node."""

    should_run: bool
    """Whether a pod is created for the node."""
    should_continue_running: bool
    """Whether an existing pod may continue to run."""


NO_FIT: Final = Fit(should_run=False, should_continue_running=False)
FITS: Final = Fit(should_run=True, should_continue_running=True)


def fit_of(daemon_set: ReadOnlyTree) -> Callable[[ReadOnlyTree], Fit]:
    """Return a function that checks a node; it is built once for many nodes."""
    spec = with_tolerations(daemon_set["spec"]["template"].get("spec") or {})
    matches_node = required_node_affinity(spec)
    name = spec.get("nodeName") or ""

    def fit(node: ReadOnlyTree) -> Fit:
        if (name and name != meta.name(node)) or (matches_node is not None and not matches_node(node)):
            return NO_FIT
        taints = (node.get("spec") or {}).get("taints") or ()
        if find_untolerated_taint(spec, taints, ("NoExecute", "NoSchedule")) is None:
            return FITS
        return Fit(
            should_run=False,
            should_continue_running=find_untolerated_taint(spec, taints, ("NoExecute",)) is None,
        )

    return fit


def target_node(pod: PodView) -> str:
    """Return the node of a pod: the one it runs on, or the one in its affinity; empty if neither is known."""
    if pod.node:
        return pod.node
    affinity = ((pod.object.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field["key"] == _NODE_NAME and field["operator"] == "In":
                values: Sequence[str] = field.get("values") or ()
                return values[0] if len(values) == 1 else ""
    return ""


# --- the body of a pod


def new_pod(daemon_set: ReadOnlyTree, node: str, revision_hash: str) -> ReadOnlyTree:
    pod = pod_of(daemon_set["spec"]["template"], daemon_set)
    generation = template_generation(daemon_set)
    labels = {LABEL_TEMPLATE_GENERATION: str(generation)} if generation is not None else {}
    pod = meta.with_labels(pod, {**labels, LABEL_CONTROLLER_REVISION_HASH: revision_hash})
    spec = with_tolerations(pod["spec"])
    return {**pod, "spec": {**spec, "affinity": _with_node(spec.get("affinity") or {}, node)}}


def is_updated(daemon_set: ReadOnlyTree, pod: PodView, revision_hash: str) -> bool:
    """Return whether the pod was created from the newest template."""
    generation = template_generation(daemon_set)
    if generation is not None and pod.labels.get(LABEL_TEMPLATE_GENERATION) == str(generation):
        return True
    return bool(revision_hash) and pod.labels.get(LABEL_CONTROLLER_REVISION_HASH) == revision_hash


def template_generation(daemon_set: ReadOnlyTree) -> int | None:
    return int_or_none(meta.annotations(daemon_set).get(TEMPLATE_GENERATION, ""))


def with_tolerations(spec: ReadOnlyTree) -> dict[str, Any]:
    """Return the spec with the tolerations of every DaemonSet pod: they tolerate node conditions."""
    taints = _TOLERATED + (_TOLERATED_IN_HOST_NETWORK if spec.get("hostNetwork") else ())
    tolerations = [*(spec.get("tolerations") or ())]
    for name, effect in taints:
        new = {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
        positions = [position for position, old in enumerate(tolerations) if _is_same_toleration(old, new)]
        for position in positions:
            tolerations[position] = new
        if not positions:
            tolerations.append(new)
    return {**spec, "tolerations": tolerations}


def _is_same_toleration(toleration: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    fields = ("key", "effect", "operator", "value")
    return all((toleration.get(field) or "") == (other.get(field) or "") for field in fields)


def _with_node(affinity: ReadOnlyTree, node: str) -> ReadOnlyTree:
    """Return the affinity with only this node as required; other requirements have been checked."""
    field = {"key": _NODE_NAME, "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    node_affinity = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": required,
    }
    return {**affinity, "nodeAffinity": node_affinity}
