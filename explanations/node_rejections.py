"""What a plugin of the scheduler finds on a node that rejects a pod: the port and who holds it, the label, the rule, the taint; and what would change it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.quantity import Format, Quantity
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    LABEL_HOSTNAME,
    TAINT_CONTROL_PLANE,
    TAINT_DISK_PRESSURE,
    TAINT_MEMORY_PRESSURE,
    TAINT_NETWORK_UNAVAILABLE,
    TAINT_NOT_READY,
    TAINT_PID_PRESSURE,
    TAINT_UNREACHABLE,
    TAINT_UNSCHEDULABLE,
)
from mockube.client.component_helpers.node_selectors import matches_term
from mockube.client.component_helpers.pod_requests import CPU
from mockube.client.component_helpers.tolerations import find_untolerated_taint
from mockube.scheduler.affinity_terms import AffinityTerm
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo
from mockube.scheduler.spreading import REQUIRED, own_constraints

from .commands import explanation_command
from .explanation import Origin, Remedy
from .facts import Facts, Member
from .owners import changed_in, template_change, template_origin, template_owner
from .remedies import JSON, deleted, labelled, patched, uncordoned, untainted

TAINTS: Final = "TaintToleration"
UNSCHEDULABLE: Final = "NodeUnschedulable"
RESOURCES: Final = "NodeResourcesFit"
VALUE: Final = "VALUE"
"""In place of the value of a label that no node has."""
TAINTS_OF_CONTROLLERS: Final = frozenset(
    {
        TAINT_NOT_READY,
        TAINT_UNREACHABLE,
        TAINT_UNSCHEDULABLE,
        TAINT_MEMORY_PRESSURE,
        TAINT_DISK_PRESSURE,
        TAINT_PID_PRESSURE,
        TAINT_NETWORK_UNAVAILABLE,
    }
)
"""The keys of taints that the node lifecycle controller adds again after they were removed."""
_NODE_AFFINITY: Final = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")


class Rejected(Struct, frozen=True, kw_only=True):
    """A pod and a node that a plugin rejects, or the nodes that lack least."""

    pod: PodInfo
    nodes: Sequence[NodeInfo]
    snapshot: ClusterSnapshot
    facts: Facts

    @property
    def node(self) -> NodeInfo:
        return self.nodes[0]

    @property
    def tree(self) -> ReadOnlyTree:
        return self.pod.view.object

    def origin(self, *path: str | Member) -> Origin:
        return template_origin(self.tree, self.facts, *path)


class Plugin(Struct, frozen=True, kw_only=True):
    """What is said of a plugin that rejects a pod."""

    detail: Callable[[Rejected], str]
    origins: Callable[[Rejected], Iterator[Origin]]
    remedies: Callable[[Rejected], Iterator[Remedy]]


# --- resources


def _amount(name: str, value: int) -> str:
    return str(Quantity(Decimal(value).scaleb(-3)) if name == CPU else Quantity(value, Format.BINARY_SI))


def _missing_resources(pod: PodInfo, node: NodeInfo) -> Sequence[str]:
    return [
        name
        for name, amount in pod.requested.items()
        if amount > node.allocatable[name] - node.requested[name]
    ]


def _resource_detail(rejected: Rejected) -> str:
    pod, node = rejected.pod, rejected.node
    texts = [
        f"{name}: requests {_amount(name, pod.requested[name])}, "
        f"free {_amount(name, max(0, node.allocatable[name] - node.requested[name]))} "
        f"of {_amount(name, node.allocatable[name])}"
        for name in _missing_resources(pod, node)
    ]
    if len(node.pods) + 1 > node.max_pods:
        texts.append(f"pods: {len(node.pods)} of {node.max_pods}")
    return "; ".join(texts)


def _resource_origins(rejected: Rejected) -> Iterator[Origin]:
    for container in rejected.pod.spec.get("containers") or ():
        if (container.get("resources") or {}).get("requests"):
            yield rejected.origin("containers", Member(container["name"]), "resources")


def _resource_remedies(rejected: Rejected) -> Iterator[Remedy]:
    pod, nodes = rejected.pod, rejected.nodes
    for name in dict.fromkeys(name for node in nodes for name in _missing_resources(pod, node)):
        best = max(nodes, key=lambda node: node.allocatable[name] - node.requested[name])
        free = max(0, best.allocatable[name] - best.requested[name])
        amount = _amount(name, free)
        text = f"Request at most {amount} of {name}, which {best.name} has free, or end pods there"
        containers = [each["name"] for each in pod.spec.get("containers") or ()]
        is_alone = meta.controller_of(rejected.tree) is None
        if free and len(containers) == 1 and not is_alone:
            change = {"name": containers[0], "resources": {"requests": {name: amount}}}
            yield template_change(rejected.tree, rejected.facts, text, {"containers": [change]})
        else:
            yield Remedy(text=f"{text}.")
    full = [node for node in nodes if len(node.pods) + 1 > node.max_pods]
    if full:
        yield Remedy(text=f"End a pod on {full[0].name}: it has {full[0].max_pods} pods, its maximum.")
    yield Remedy(text="Or add nodes that are large enough: `mockube nodes --help`.")


# --- taints and cordons


def untolerated_taint(pod: PodInfo, node: NodeInfo) -> ReadOnlyTree | None:
    """Return the first taint that the pod does not tolerate, without that of a cordon."""
    taints = [
        each for each in node.taints if not (node.is_unschedulable and each["key"] == TAINT_UNSCHEDULABLE)
    ]
    return find_untolerated_taint(pod.spec, taints, ("NoSchedule", "NoExecute"))


def is_reserved(pod: PodInfo, node: NodeInfo) -> bool:
    """Return whether a node keeps the pod out as one of the control plane, whose label the pod does not select."""
    keys = {each["key"] for term in _required_terms(pod) for each in term.get("matchExpressions") or ()}
    if TAINT_CONTROL_PLANE in keys | {*(pod.spec.get("nodeSelector") or ())}:
        return False
    taints = [each for each in node.taints if each["key"] == TAINT_CONTROL_PLANE]
    return find_untolerated_taint(pod.spec, taints, ("NoSchedule", "NoExecute")) is not None


def taint_text(taint: ReadOnlyTree) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _taint_detail(rejected: Rejected) -> str:
    taint = untolerated_taint(rejected.pod, rejected.node)
    return "" if taint is None else taint_text(taint)


def _taint_origins(rejected: Rejected) -> Iterator[Origin]:
    for node in rejected.nodes:
        taint = untolerated_taint(rejected.pod, node)
        if taint is not None:
            yield Origin.of(node.node, "spec", "taints", Member(taint["key"]))


def _taint_remedies(rejected: Rejected) -> Iterator[Remedy]:
    pod = rejected.pod
    for node in rejected.nodes:
        taint = untolerated_taint(pod, node)
        if taint is not None and taint["key"] in TAINTS_OF_CONTROLLERS:
            yield Remedy(
                text=f"Why a controller has set the taint {taint_text(taint)} of {node.name}:",
                command=explanation_command("node", "", node.name),
            )
            return
        if taint is not None:
            yield _toleration(rejected, taint)
            if taint["key"] != TAINT_CONTROL_PLANE:
                yield untainted(f"Remove the taint from {node.name}:", node.node, taint)
            return


def _toleration(rejected: Rejected, taint: ReadOnlyTree) -> Remedy:
    """Return the change by which a pod, or those that are made with it, tolerates a taint."""
    toleration = {name: value for name, value in taint.items() if name in ("key", "value", "effect")}
    if not taint.get("value"):
        toleration["operator"] = "Exists"
    tolerations, text = (
        rejected.pod.spec.get("tolerations") or (),
        f"Let the pod tolerate {taint_text(taint)}",
    )
    if tolerations and meta.controller_of(rejected.tree) is None:  # none may be removed from a pod
        patch = [{"op": "add", "path": "/spec/tolerations/-", "value": toleration}]
        return patched(f"{text}:", rejected.tree, patch, media_type=JSON)
    others = [each for each in tolerations if each.get("key") not in TAINTS_OF_CONTROLLERS]
    change = {"tolerations": [*others, toleration]}
    return template_change(rejected.tree, rejected.facts, text, change, is_mutable=True)


def _cordon_origins(rejected: Rejected) -> Iterator[Origin]:
    for node in rejected.nodes:
        if node.is_unschedulable:
            yield Origin.of(node.node, "spec", "unschedulable")


def _cordon_remedies(rejected: Rejected) -> Iterator[Remedy]:
    for node in rejected.nodes:
        if node.is_unschedulable:
            yield uncordoned(f"Let {node.name} accept pods:", node.node)
            return


# --- labels of nodes


def _missing_labels(pod: PodInfo, node: NodeInfo) -> Mapping[str, str]:
    selector = pod.spec.get("nodeSelector") or {}
    return {key: value for key, value in selector.items() if node.labels.get(key) != value}


def _requirement_text(requirement: ReadOnlyTree) -> str:
    values = ", ".join(requirement.get("values") or ())
    return f"{requirement['key']} {requirement['operator']}{f' [{values}]' if values else ''}"


def _failed_requirements(term: ReadOnlyTree, node: NodeInfo) -> Iterator[str]:
    """Yield the requirements of a term that a node does not have, with what it has."""
    for field, values in (
        ("matchExpressions", node.labels),
        ("matchFields", {"metadata.name": node.name}),
    ):
        for requirement in term.get(field) or ():
            if not matches_term({field: [requirement]}, node.node):
                value = values.get(requirement["key"])
                yield f"{_requirement_text(requirement)}, and it has {'none' if value is None else value}"


def _required_terms(pod: PodInfo) -> Sequence[ReadOnlyTree]:
    required = (pod.affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    return (required or {}).get("nodeSelectorTerms") or ()


def _label_detail(rejected: Rejected) -> str:
    missing = [f"{key}={value}" for key, value in _missing_labels(rejected.pod, rejected.node).items()]
    if missing:
        return f"lacks {', '.join(missing)}"
    terms = ["; ".join(_failed_requirements(term, rejected.node)) for term in _required_terms(rejected.pod)]
    return f"nodeAffinity needs {', or '.join(filter(None, terms)) or 'a term that selects it'}"


def _label_origins(rejected: Rejected) -> Iterator[Origin]:
    missing = _missing_labels(rejected.pod, rejected.node)
    if not missing:
        yield rejected.origin(*_NODE_AFFINITY)
        return
    for key in missing:
        yield rejected.origin("nodeSelector", key)
        yield Origin.of(rejected.node.node, "metadata", "labels", key)


_LABELS_OF_KUBELETS: Final = frozenset({"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch"})
"""The labels by which a kubelet says what its node is."""


def _label_remedies(rejected: Rejected) -> Iterator[Remedy]:
    node, place = rejected.node, changed_in(rejected.tree)
    missing = _missing_labels(rejected.pod, node)
    if missing:
        if not missing.keys() & _LABELS_OF_KUBELETS:
            yield labelled(f"Label a node, such as {node.name}:", node.node, missing)
        change = {"nodeSelector": dict.fromkeys(missing)}
        yield template_change(rejected.tree, rejected.facts, "Or change spec.nodeSelector", change)
        return
    labels = _wanted_labels(rejected.pod, node)
    if labels and not labels.keys() & _LABELS_OF_KUBELETS:
        yield labelled(f"Label a node, such as {node.name}:", node.node, labels)
    yield Remedy(text=f"Change spec.affinity.nodeAffinity in {place}.")


def _wanted_labels(pod: PodInfo, node: NodeInfo) -> Mapping[str, str]:
    """Return the labels by which a node would have what the first term requires; none if labels are not enough."""
    labels: dict[str, str] = {}
    for term in _required_terms(pod)[:1]:
        if term.get("matchFields"):
            return {}
        for requirement in term.get("matchExpressions") or ():
            if matches_term({"matchExpressions": [requirement]}, node.node):
                continue
            if requirement["operator"] == "In":
                labels[requirement["key"]] = requirement["values"][0]
            elif requirement["operator"] == "Exists":
                labels[requirement["key"]] = VALUE
            else:
                return {}
    return labels


# --- ports


def _held_ports(pod: PodInfo, node: NodeInfo) -> Iterator[tuple[str, PodInfo]]:
    """Yield the ports of the node that the pod needs, with the pods that have them."""
    for other in node.pods.values():
        for port in pod.host_ports:
            if any(port.conflicts(used) for used in other.host_ports):
                yield f"{port.port}/{port.protocol}", other


def _port_detail(rejected: Rejected) -> str:
    conflicts = _held_ports(rejected.pod, rejected.node)
    return "; ".join(f"the host port {port} is that of the pod {_name(other)}" for port, other in conflicts)


def _name(pod: PodInfo) -> str:
    return f"{pod.view.key.namespace}/{pod.view.key.name}"


def _port_holders(rejected: Rejected) -> Iterator[tuple[str, NodeInfo, ReadOnlyTree]]:
    """Yield the ports that the pod needs, the nodes, and what made the pods there that have them, but for what made the pod itself."""
    own = _identity(template_owner(rejected.tree, rejected.facts))
    for node in rejected.nodes:
        for port, other in _held_ports(rejected.pod, node):
            owner = template_owner(other.view.object, rejected.facts)
            if _identity(owner) != own:
                yield port, node, owner


def _identity(obj: ReadOnlyTree) -> tuple[str, str, str]:
    return meta.kind(obj), meta.namespace(obj), meta.name(obj)


def _port_origins(rejected: Rejected) -> Iterator[Origin]:
    for _, _, owner in _port_holders(rejected):
        yield Origin.of(owner)
    for container in rejected.pod.spec.get("containers") or ():
        if any(port.get("hostPort") for port in container.get("ports") or ()):
            yield rejected.origin("containers", Member(container["name"]), "ports")


def _port_remedies(rejected: Rejected) -> Iterator[Remedy]:
    holder = next(_port_holders(rejected), None)
    if holder is None:
        yield Remedy(
            text="Pods of the same template have the port, so that a node takes one of them. Add nodes: `mockube nodes --help`."
        )
    else:
        port, node, owner = holder
        yield deleted(f"End what has the host port {port} on {node.name}:", owner)
    yield Remedy(text=f"Or change hostPort in {changed_in(rejected.tree)}, or leave it out.")


# --- the spread of pods


def _spread_detail(rejected: Rejected) -> str:
    pod, node, snapshot = rejected.pod, rejected.node, rejected.snapshot
    constraints = own_constraints(pod, REQUIRED)
    missing = [each.topology_key for each in constraints if each.topology_key not in node.labels]
    if missing:
        return f"lacks the label {missing[0]}"
    texts = []
    for constraint in constraints:
        key = constraint.topology_key
        counts: dict[str, int] = {}
        for other in snapshot.nodes:
            if key in other.labels and constraint.counts_in(pod, other):
                domain = other.labels[key]
                counts[domain] = counts.get(domain, 0) + constraint.count(pod, other)
        least = min(counts, key=lambda domain: counts[domain], default="")
        own = counts.get(node.labels[key], 0)
        if counts and own + 1 - counts[least] > constraint.max_skew:
            texts.append(
                f"{key}={node.labels[key]} has {own} of the pods, {key}={least} has {counts[least]}, "
                f"and maxSkew is {constraint.max_skew}"
            )
    return "; ".join(texts)


def _spread_origins(rejected: Rejected) -> Iterator[Origin]:
    yield rejected.origin("topologySpreadConstraints")
    for constraint in own_constraints(rejected.pod, REQUIRED):
        if constraint.topology_key not in rejected.node.labels:
            yield Origin.of(rejected.node.node, "metadata", "labels", constraint.topology_key)


def _spread_remedies(rejected: Rejected) -> Iterator[Remedy]:
    node = rejected.node
    keys = [
        each.topology_key
        for each in own_constraints(rejected.pod, REQUIRED)
        if each.topology_key not in node.labels
    ]
    for key in keys:
        present = sorted({other.labels[key] for other in rejected.snapshot.nodes if key in other.labels})
        value = node.name if key == LABEL_HOSTNAME else next(iter(present), VALUE)
        yield labelled(f"Label a node, such as {node.name}:", node.node, {key: value})
    relaxed = [
        {"topologyKey": each["topologyKey"], "whenUnsatisfiable": "ScheduleAnyway"}
        for each in rejected.pod.spec.get("topologySpreadConstraints") or ()
        if each.get("whenUnsatisfiable", REQUIRED) == REQUIRED
    ]
    if relaxed:
        text, change = "Prefer the spread, and do not require it", {"topologySpreadConstraints": relaxed}
        yield template_change(rejected.tree, rejected.facts, text, change)


# --- affinity to pods


class AffinityRule(NamedTuple):
    """A rule that rejects a node: the field that has it, a text, and the other pod that has it."""

    field: str
    text: str
    other: PodInfo | None = None


def _term_text(field: str, term: AffinityTerm) -> str:
    return f"{field} {term.selector} in the same {term.topology_key}"


def _pods_nearby(rejected: Rejected, key: str) -> Iterator[PodInfo]:
    """Yield the pods in the topology domain of the node."""
    node = rejected.node
    for other in rejected.snapshot.nodes:
        if key in node.labels and other.labels.get(key) == node.labels[key]:
            yield from other.pods.values()


def _affinity_causes(rejected: Rejected) -> Iterator[AffinityRule]:
    """Yield the rules of affinity that reject a node."""
    yield from _unmet_affinity(rejected)
    own = [*_own_anti_affinity(rejected)]
    yield from own or _anti_affinity_of_others(rejected)  # those of the same template have the same rule


def _unmet_affinity(rejected: Rejected) -> Iterator[AffinityRule]:
    labels_of = rejected.snapshot.labels_of_namespace
    for term in rejected.pod.terms.affinity:
        if term.topology_key not in rejected.node.labels:
            yield AffinityRule("podAffinity", f"lacks the label {term.topology_key} of podAffinity")
        elif not any(
            term.matches(each.view, labels_of) for each in _pods_nearby(rejected, term.topology_key)
        ):
            yield AffinityRule("podAffinity", f"{_term_text('podAffinity', term)} matches no pod there")


def _own_anti_affinity(rejected: Rejected) -> Iterator[AffinityRule]:
    labels_of = rejected.snapshot.labels_of_namespace
    for term in rejected.pod.terms.anti_affinity:
        nearby = _pods_nearby(rejected, term.topology_key)
        other = next((each for each in nearby if term.matches(each.view, labels_of)), None)
        if other is not None:
            text = f"{_term_text('podAntiAffinity', term)} matches the pod {_name(other)} there"
            yield AffinityRule("podAntiAffinity", text)


def _anti_affinity_of_others(rejected: Rejected) -> Iterator[AffinityRule]:
    labels_of, node = rejected.snapshot.labels_of_namespace, rejected.node
    for each in rejected.snapshot.nodes:
        for other in each.pods_with_affinity.values():
            for term in other.terms.anti_affinity:
                key = term.topology_key
                is_near = key in node.labels and each.labels.get(key) == node.labels[key]
                if is_near and term.matches(rejected.pod.view, labels_of):
                    text = f"{_term_text('podAntiAffinity', term)} of the pod {_name(other)} there matches it"
                    yield AffinityRule("podAntiAffinity", text, other)


def _affinity_detail(rejected: Rejected) -> str:
    return "; ".join(dict.fromkeys(rule.text for rule in _affinity_causes(rejected)))


def _tree_of(rule: AffinityRule, rejected: Rejected) -> ReadOnlyTree:
    """Return the pod that has a rule."""
    return rejected.tree if rule.other is None else rule.other.view.object


def _affinity_origins(rejected: Rejected) -> Iterator[Origin]:
    for rule in _affinity_causes(rejected):
        yield template_origin(_tree_of(rule, rejected), rejected.facts, "affinity", rule.field)


def _affinity_remedies(rejected: Rejected) -> Iterator[Remedy]:
    rule = next(_affinity_causes(rejected), None)
    if rule is None:
        return
    pod = _tree_of(rule, rejected)
    change = {"affinity": {rule.field: {"requiredDuringSchedulingIgnoredDuringExecution": None}}}
    yield template_change(pod, rejected.facts, f"Do not require the {rule.field} of {meta.name(pod)}", change)
    if rule.field == "podAntiAffinity":
        yield Remedy(text="Or add nodes, one for each pod: `mockube nodes --help`.")
    else:
        yield Remedy(text="Or run a pod there that the podAffinity selects.")


PLUGINS: Final[Mapping[str, Plugin]] = {
    RESOURCES: Plugin(detail=_resource_detail, origins=_resource_origins, remedies=_resource_remedies),
    TAINTS: Plugin(detail=_taint_detail, origins=_taint_origins, remedies=_taint_remedies),
    UNSCHEDULABLE: Plugin(detail=lambda _: "cordoned", origins=_cordon_origins, remedies=_cordon_remedies),
    "NodeAffinity": Plugin(detail=_label_detail, origins=_label_origins, remedies=_label_remedies),
    "NodePorts": Plugin(detail=_port_detail, origins=_port_origins, remedies=_port_remedies),
    "PodTopologySpread": Plugin(detail=_spread_detail, origins=_spread_origins, remedies=_spread_remedies),
    "InterPodAffinity": Plugin(
        detail=_affinity_detail, origins=_affinity_origins, remedies=_affinity_remedies
    ),
}
